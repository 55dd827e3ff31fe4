//! Tests of query dates: which texts mention a date, which do not, and how times score near a date.

use alloc::{format, string::String, vec, vec::Vec};

use super::*;
use lcm_text::base::time;

/// The time of every query in these tests, a Friday.
const NOW: &str = "2024-05-17T15:00:00Z";

fn of(text: &str) -> Option<QueryDate> {
    QueryDate::from_text(text, time::parse(NOW).unwrap())
}

fn day(text: &str) -> u64 {
    time::parse(text).unwrap() / MS_PER_DAY
}

fn span(from: &str, to: &str) -> Option<QueryDate> {
    Some(QueryDate::Days(day(from), day(to)))
}

#[test]
fn dates_are_understood() {
    for (text, from, to) in [
        ("What did Sam say on 2023-05-03?", "2023-05-03", "2023-05-03"),
        ("the backup of 3 May 2023", "2023-05-03", "2023-05-03"),
        ("on the 3rd of May, 2023", "2023-05-03", "2023-05-03"),
        ("May 3rd 2023", "2023-05-03", "2023-05-03"),
        ("dec 24 2023", "2023-12-24", "2023-12-24"),
        ("May 2023", "2023-05-01", "2023-05-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("what happened in 2022", "2022-01-01", "2022-12-31"),
        ("yesterday", "2024-05-16", "2024-05-16"),
        ("last night", "2024-05-16", "2024-05-16"),
        ("today", "2024-05-17", "2024-05-17"),
        ("what broke last week?", "2024-05-06", "2024-05-12"),
        ("this week", "2024-05-13", "2024-05-17"),
        ("last month", "2024-04-01", "2024-04-30"),
        ("this month", "2024-05-01", "2024-05-31"),
        ("last year", "2023-01-01", "2023-12-31"),
        ("three days ago", "2024-05-14", "2024-05-14"),
        ("12 days ago", "2024-05-05", "2024-05-05"),
        ("two weeks ago", "2024-04-30", "2024-05-06"),
        ("a month ago", "2024-04-02", "2024-05-02"),
        ("last Tuesday", "2024-05-14", "2024-05-14"),
        ("last Friday", "2024-05-10", "2024-05-10"),
        ("on Friday", "2024-05-17", "2024-05-17"),
        ("last June", "2023-06-01", "2023-06-30"),
    ] {
        assert_eq!(of(text), span(from, to), "{text}");
    }
    let of_month = |month, day| Some(QueryDate::DayOfMonth { month, day });
    for (text, date) in [
        ("on 3 May", of_month(5, 3)),
        ("the evening of april 8", of_month(4, 8)),
        ("the 22nd of April", of_month(4, 22)),
        ("in May", Some(QueryDate::Month(5))),
        ("a problem in April", Some(QueryDate::Month(4))),
        ("the middle of march", Some(QueryDate::Month(3))),
        ("Which knee hurt, August?", Some(QueryDate::Month(8))),
    ] {
        assert_eq!(of(text), date, "{text}");
    }
}

#[test]
fn what_is_no_date_is_none() {
    for text in [
        "",
        "may I ask",
        "they march on",
        "what may it be",
        "mar the surface",
        "in the code",
        "release 5.8.0",
        "30-february-2023",
        "2023-13-01",
        "2023-00",
        "2023",
        "error 1999",
        "three ago",
        "weeks ago",
        "last error",
        "on error",
        "99 May",
        "the sun",
        "12-34-56",
        "0000-00-00",
        "99999999999999999999 days ago",
        "in 12345",
        "one day",
        "\u{661} May",
    ] {
        assert_eq!(of(text), None, "{text}");
    }
}

#[test]
fn nearness_falls_with_the_days() {
    let at =
        |date: Option<QueryDate>, text: &str| date.unwrap().score_time(time::parse(text).unwrap());
    let day = of("on 2024-03-10");
    assert_eq!(at(day, "2024-03-10T23:59:59Z"), ONE);
    assert_eq!(at(day, "2024-03-03"), ONE * 3 / 10);
    assert_eq!(at(day, "2024-03-02"), 0);
    let behind: Vec<u64> = (11..=25).map(|n| at(day, &format!("2024-03-{n}"))).collect();
    assert!(behind.windows(2).all(|pair| pair[0] > pair[1]), "{behind:?}");
    assert!(behind[0] < ONE * 6 / 10 && behind[14] == 0);
    let month = of("in March 2024");
    let near = ["2024-02-29", "2024-03-01", "2024-03-31", "2024-04-10", "2024-04-11"];
    assert_eq!(near.map(|text| at(month, text)), [0, ONE, ONE, ONE / 2, 0]);
    assert_eq!(at(of("in 2023"), "2023-03-05"), ONE * 15 / 100);
    assert_eq!(at(of("in 2023"), "2024-01-01"), 0);
    assert_eq!(at(of("in March"), "2019-03-05"), ONE * 6 / 10);
    let of_month = ["2021-03-11", "2021-03-20", "2021-04-10"];
    assert_eq!(of_month.map(|text| at(of("on March 10"), text)), [ONE, ONE * 4 / 10, 0]);
}

/// Goal: no query text at any time makes the parser panic. Method: every sequence of up to four of
/// these words.
#[test]
fn any_text_at_any_time_has_a_date_or_none() {
    let pieces = [
        "last",
        "week",
        "ago",
        "2023",
        "may",
        "3rd",
        "of",
        "31",
        "on",
        "tuesday",
        "99999",
        "-",
        "\u{e9}",
        "2024-02-30",
        "a",
        "years",
        "in",
        "month",
        "january",
    ];
    let mut texts = vec![String::new()];
    for length in 0..4 {
        let last = texts.len() - 19_usize.pow(length);
        for at in last..texts.len() {
            for piece in pieces {
                texts.push(format!("{} {piece}", texts[at]));
            }
        }
    }
    let mut found = 0;
    for (number, text) in texts.iter().enumerate() {
        let now = [0, 1, 86_400_000 * 400, time::MS_MAX, u64::MAX][number % 5];
        if let Some(date) = QueryDate::from_text(text, now) {
            found += 1;
            for time in [0, now, time::MS_MAX, u64::MAX] {
                assert!(date.score_time(time) <= ONE);
            }
        }
    }
    assert!(found > 10_000, "{found}");
}
