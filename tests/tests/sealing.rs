#![expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a panic in a test is its failure, and its numbers are small"
)]
//! Sealed packs return the same messages, byte for byte: for any batches, after a failed commit at
//! any place, and with other writers. Damaged packs are reported.

use lcm_core::ErrorCode;
use lcm_testing::{
    Fault, Host, Json,
    host::StoreMode,
    simulation::{invariants, random::Random},
    vector_runner::{Answers, drive},
};

/// A configuration with small chunks and a short fresh tail.
const CONFIG: &str = r#"{"fresh_tail_messages_max":8,"leaf_chunk_tokens_max":4000}"#;
const BUDGET: u64 = 6_000;

/// Returns messages with ids, of about `bytes` bytes each; some compress well and some badly.
fn texts(count: u64, bytes: u64) -> Vec<String> {
    let mut random = Random::new(count + bytes);
    let message = |seq: u64| {
        let mut text = String::new();
        while (text.len() as u64) < bytes {
            let word = random.between(0, if seq.is_multiple_of(5) { 1 << 40 } else { 300 });
            text.push_str(&format!("word{word:x} "));
        }
        let role = ["user", "assistant"][(seq % 2) as usize];
        format!(r#"{{"id":"m{seq}","role":"{role}","timestamp":{seq},"content":"{text}"}}"#)
    };
    (1..=count).map(message).collect()
}

fn append(host: &mut Host, texts: &[String]) {
    let messages = texts.iter().map(|text| text.as_str().into()).collect();
    let options = Json::of(r#"{"append_mode":"new"}"#);
    let args = Json::object([("messages", Json::Array(messages)), ("options", options)]);
    host.ask("ingest.append", &args).unwrap();
}

fn compact(host: &mut Host) {
    let args = Json::object([("budget", BUDGET.into())]);
    drive(host, &args, Answers::Offline).unwrap().unwrap();
}

fn filled(texts: &[String], batch: usize, mode: StoreMode) -> Host {
    let mut host = Host::new(Some(Json::of(CONFIG)), mode).unwrap();
    texts.chunks(batch).for_each(|batch| append(&mut host, batch));
    host
}

/// Returns the keys of one kind of records.
fn keys(host: &Host, kind: char) -> Vec<String> {
    let kind = format!("/{kind}");
    let of_kind = |key: &&String| key.get(22..24) == Some(&kind);
    host.store.entries().keys().filter(of_kind).cloned().collect()
}

fn seq(key: &str) -> u64 {
    u64::from_str_radix(key.get(24..).unwrap(), 16).unwrap()
}

fn try_messages(host: &mut Host, from: u64, to: u64) -> Result<Vec<String>, lcm_core::Error> {
    let mut out: Vec<String> = Vec::new();
    let mut next = from;
    loop {
        let args = Json::object([("seq_first", next.into()), ("seq_last", to.into())]);
        let page = host.ask("recall.messages", &args)?;
        out.extend(page.elements().iter().map(|text| text.as_str().unwrap().to_owned()));
        next += page.elements().len() as u64;
        if page.elements().is_empty() || next > to {
            return Ok(out);
        }
    }
}

fn messages(host: &mut Host, from: u64, to: u64) -> Vec<String> {
    try_messages(host, from, to).unwrap()
}

fn check(host: &mut Host, place: &str) {
    invariants::the_store_checks_out(host, "c").unwrap_or_else(|why| panic!("{place}: {why}"));
}

/// Checks everything that a sealed history must still do.
fn assert_kept(host: &mut Host, texts: &[String], place: &str) {
    let count = texts.len() as u64;
    check(host, place);
    assert_eq!(messages(host, 1, count), texts, "{place}");
    let mut random = Random::new(count);
    for cold in [false, true] {
        host.cold = cold;
        for _ in 0..20 {
            let from = random.between(1, count);
            let to = (from + random.between(0, 3)).min(count);
            let found = messages(host, from, to);
            assert_eq!(found, texts[from as usize - 1..to as usize], "{place}: {from} to {to}");
        }
    }
    host.cold = false;
    let sealed = keys(host, 'z');
    let last = sealed.last().map_or(0, |key| seq(key));
    assert!(keys(host, 'm').iter().all(|key| seq(key) > last), "{place}: a pack was left behind");
    let report = host.ask("admin.check", &Json::of(r#"{"conversation":"c"}"#)).unwrap();
    let metrics = Json::of(report.as_str().unwrap()).field("metrics").unwrap().clone();
    let packs = metrics.field("bytes").unwrap().field("packs").unwrap().clone();
    let sum: u64 = ['m', 'z', 'd'].into_iter().map(|kind| bytes(host, kind)).sum();
    assert_eq!(packs, sum.into(), "{place}: {metrics}");
}

/// Returns the bytes of keys and values of one kind of records.
fn bytes(host: &Host, kind: char) -> u64 {
    let size = |key: &String| (key.len() + host.store.entries()[key].len()) as u64;
    keys(host, kind).iter().map(size).sum()
}

#[test]
fn sealing_keeps_every_message_at_all_batch_sizes() {
    let texts = texts(1_500, 500);
    let mut digests = Vec::new();
    for batch in [1, 7, 64, 100] {
        let mut host = filled(&texts, batch, StoreMode::Plain);
        compact(&mut host);
        let place = format!("batches of {batch}");
        assert_kept(&mut host, &texts, &place);
        let sealed = keys(&host, 'z');
        println!("{place}: {} sealed packs, {} packs", sealed.len(), keys(&host, 'm').len());
        assert!(sealed.len() >= 8, "{place}: {}", sealed.len());
        let raw = texts.iter().map(String::len).sum::<usize>() as u64;
        let stored = bytes(&host, 'z') + bytes(&host, 'm');
        assert!(stored * 10 < raw * 7, "{place}: {stored} of {raw}");
        digests.push(host.ask("admin.digest", &Json::of(r#"{"logical":true}"#)).unwrap());
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:?}");
}

/// Goal: a history that is sealed while it grows equals one that is sealed in the end. Method:
/// compaction after each batch, with an asynchronous store and with new instances, too.
#[test]
fn sealing_while_the_history_grows() {
    let texts = texts(600, 700);
    let mut digests = Vec::new();
    for (mode, cold) in
        [(StoreMode::Plain, false), (StoreMode::Plain, true), (StoreMode::WouldBlock, false)]
    {
        let mut host = Host::new(Some(Json::of(CONFIG)), mode).unwrap();
        host.cold = cold;
        for batch in texts.chunks(23) {
            append(&mut host, batch);
            compact(&mut host);
        }
        assert!(keys(&host, 'z').len() >= 4);
        digests.push(host.store.digest());
        assert_kept(&mut host, &texts, &format!("{mode:?}, cold {cold}"));
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:?}");
}

/// Goal: neither huge messages nor thousands of tiny ones exceed a bound. Method: texts of every
/// size from a few bytes to over a chunk; the test store itself checks the bounds of each call.
#[test]
fn sealing_of_huge_and_tiny_texts() {
    let mut all = texts(3_000, 4);
    for (at, bytes) in [(10, 60_000), (11, 65_500), (12, 66_000), (13, 300_000), (900, 250_000)] {
        all[at] = texts(1, bytes).remove(0).replace("m1\"", &format!("n{at}\""));
    }
    for (at, text) in texts(40, 40_000).into_iter().enumerate() {
        all[1_200 + at] = text.replace("\"m", "\"o");
    }
    let mut host = Host::new(Some(Json::of(CONFIG)), StoreMode::Plain).unwrap();
    let mut from = 0;
    while from < all.len() {
        let mut bytes = 0;
        let more = |text: &&String| {
            bytes += text.len();
            bytes < 500_000
        };
        let count = all[from..].iter().take(100).take_while(more).count();
        append(&mut host, &all[from..from + count]);
        from += count;
    }
    compact(&mut host);
    assert_kept(&mut host, &all, "huge and tiny");
    assert!(keys(&host, 'z').len() > 12);
}

/// Returns a host whose next apply seals, the arguments of that apply, and the messages.
fn before_sealing() -> (Host, Json, Vec<String>) {
    let texts = texts(420, 700);
    let mut host = filled(&texts, 30, StoreMode::Plain);
    let plan_args = Json::of(r#"{"budget":6000}"#);
    for _ in 0..1_000 {
        let plan = host.ask("compaction.plan", &plan_args).unwrap();
        let request = plan.field("requests").unwrap().element(0).unwrap().clone();
        let args = Json::object([("request", request.clone())]);
        let completion = host.ask("compaction.complete_offline", &args).unwrap();
        let answer = Json::object([("done", completion)]);
        let id = request.field("id").unwrap().clone();
        let args = Json::object([("request_id", id), ("answer", answer)]);
        let store = host.store.clone();
        let sealed = keys(&host, 'z').len();
        host.ask("compaction.apply", &args).unwrap();
        if sealed > 0 && keys(&host, 'z').len() > sealed {
            host.store = store;
            host.restart().unwrap();
            return (host, args, texts);
        }
    }
    panic!("nothing was sealed");
}

#[test]
fn a_sealing_commit_that_fails_changes_nothing() {
    let (mut host, args, texts) = before_sealing();
    let before = host.store.clone();
    host.ask("compaction.apply", &args).unwrap();
    let after = host.store.digest();
    for (fault, cold) in [(Fault::Before, false), (Fault::ReplyLost, false), (Fault::Before, true)]
    {
        for at in 1.. {
            host.store = before.clone();
            host.restart().unwrap();
            host.cold = cold;
            if !cold {
                messages(&mut host, 1, 420);
            }
            host.plan_fault(at, fault);
            let answer = host.ask("compaction.apply", &args);
            let place = format!("{fault:?} at {at}, cold {cold}");
            if !host.fault_fired() {
                assert!(at > 2, "{place}: hardly any operation");
                host.clear_fault();
                break;
            }
            assert_eq!(answer.unwrap_err().code, ErrorCode::StoreUnavailable, "{place}");
            let digest = host.store.digest();
            let is_before = digest == before.digest();
            assert!(is_before || digest == after, "{place}: neither before nor after");
            host.clear_fault();
            check(&mut host, &place);
            host.ask("compaction.apply", &args).unwrap();
            assert_eq!(host.store.digest(), after, "{place}: repeated");
            assert_eq!(messages(&mut host, 1, 420), texts, "{place}");
        }
    }
}

/// Goal: a call that reads or writes while another call seals gets the old state, the new state, or
/// `conflict`, never damage. Method: the whole sealing call happens before each store operation of
/// every other call.
#[test]
fn who_meets_a_sealing_commit_sees_no_damage() {
    let (mut host, apply, texts) = before_sealing();
    let before = host.store.clone();
    let whole = Json::of(r#"{"seq_first":1,"seq_last":420}"#);
    let assemble = Json::of(r#"{"budget":1000000}"#);
    let more = Json::of(
        r#"{"messages":[{"role":"user","content":"more"}],"options":{"append_mode":"new"}}"#,
    );
    let listing = Json::of(r#"{"kind":"messages","bytes_max":1000000}"#);
    let plan = Json::of(r#"{"budget":6000,"options":{"lease_ms":1000}}"#);
    let calls = [
        ("recall.messages", &whole),
        ("context.assemble", &assemble),
        ("ingest.append", &more),
        ("compaction.plan", &plan),
        ("compaction.apply", &apply),
        ("admin.digest", &Json::of(r#"{"logical":true}"#)),
        ("admin.listing", &listing),
    ];
    let (mut conflicts, mut meetings) = (0, 0);
    for (name, args) in calls {
        for cold in [false, true] {
            for at in 1.. {
                host.store = before.clone();
                host.cold = false;
                host.restart().unwrap();
                if !cold {
                    messages(&mut host, 300, 420);
                }
                host.cold = cold;
                let other = ("compaction.apply", &apply);
                let (answer, met) = host.ask_interleaved(name, args, at, other);
                if !met {
                    break;
                }
                meetings += 1;
                let place = format!("{name} at {at}, cold {cold}");
                if let Err(error) = answer {
                    assert_eq!(error.code, ErrorCode::Conflict, "{place}: {error}");
                    conflicts += 1;
                    host.ask(name, args).unwrap_or_else(|error| panic!("{place}: {error}"));
                }
                check(&mut host, &place);
                assert_eq!(messages(&mut host, 1, 420), texts, "{place}");
            }
        }
    }
    println!("{conflicts} conflicts in {meetings} meetings");
    assert!(conflicts > 5 && meetings > 30, "{conflicts} conflicts in {meetings} meetings");
}

/// Goal: a damaged sealed pack gives an error or a finding, never a panic or another message.
/// Method: single changed bytes at many places of two sealed packs, and truncated packs.
#[test]
fn a_damaged_sealed_pack_is_reported() {
    let texts = texts(300, 700);
    let mut host = filled(&texts, 50, StoreMode::Plain);
    compact(&mut host);
    let sound = host.store.clone();
    let (mut refused, mut found) = (0, 0);
    for key in keys(&host, 'z').iter().take(2) {
        let length = sound.entries()[key].len();
        let places = (0..64.min(length)).chain((64..length).step_by(length / 40));
        for (at, cut) in places.flat_map(|at| [(at, false), (at, at % 3 == 0)]) {
            host.store = sound.clone();
            let value = host.store.entries_mut().get_mut(key).unwrap();
            if cut {
                value.truncate(at);
            } else {
                value[at] ^= 0x21;
            }
            host.restart().unwrap();
            let place = format!("`{key}` at {at}, cut {cut}");
            let read = try_messages(&mut host, 1, 300);
            let report = host.ask("admin.check", &Json::Null);
            let report = report.map(|report| Json::of(report.as_str().unwrap()));
            let passes = report.is_ok_and(|report| report.field("ok") == Some(&Json::Bool(true)));
            match read {
                Ok(read) => assert!(read == texts || !passes, "{place}: nothing was found"),
                Err(error) => {
                    let known = [ErrorCode::Corrupt, ErrorCode::Unsupported];
                    assert!(known.contains(&error.code), "{place}: {error}");
                    refused += 1;
                }
            }
            found += u32::from(!passes);
            let _ = host.ask("context.assemble", &Json::of(r#"{"budget":100000}"#));
            let _ = host.ask("admin.digest", &Json::of(r#"{"logical":true}"#));
        }
    }
    println!("{refused} refused, {found} found");
    assert!(refused > 100 && found > 200, "{refused} refused, {found} found");
}
