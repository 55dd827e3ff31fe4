//! `lcm ask`: answers a question from stored messages.
//!
//! In: a question and the models of `--llm`. Out: the answer and the ids that it cites, or an error
//! if the model failed or another question of the conversation is open.

use lcm_host::{AskOptions, AskReport, AskStatus, Code, Error, Result, Withdrawal};

use super::recall::describe_charge;
use crate::{
    End,
    arguments::{Ask, Global},
    output::{self, count},
    session::Session,
};

pub(crate) fn run(global: &Global, options: &Ask) -> Result<End> {
    let session = Session::with_models(global, &options.models)?;
    let ask = AskOptions {
        query: options.query.clone(),
        summary_ids: options.summary_ids.clone(),
        answer_tokens_max: options.answer_tokens_max,
        tokens_max: options.tokens_max,
        all_conversations: options.all_conversations,
        only: options.only,
        grant: options.grant.clone(),
        deadline_ms: options.deadline.map(|seconds| u64::from(seconds).saturating_mul(1_000)),
        clock: session.clock,
    };
    let (conversation, question) = (session.conversation, options.question.as_str());
    let report = session.lcm.ask(conversation, question, &ask, &session.cancel)?;
    if let Some(error) = failure(&report) {
        return Err(error);
    }
    if session.json {
        output::json(&report)?;
    } else {
        output::text(&for_people(&report, conversation))?;
    }
    Ok(End::Done)
}

/// Returns the error of a question that failed; `None`: the question has a result to print.
fn failure(report: &AskReport) -> Option<Error> {
    let model = report.failure.as_ref();
    let said = |why: &str| match model {
        Some(failure) => format!("the model answered `{}`: {}", failure.code, failure.message),
        None => why.to_owned(),
    };
    let (code, message) = match report.status {
        AskStatus::Busy => {
            let until = report.expires_at.as_deref().unwrap_or_default();
            let message = format!(
                "another question of this conversation is open until {until} at the latest; ask \
                 again after its end"
            );
            (Code::Conflict, message)
        }
        AskStatus::ModelFailed | AskStatus::TimedOut => {
            (Code::CompletionFailed, said("the model failed"))
        }
        AskStatus::NoAnswer => {
            (Code::CompletionFailed, said("the model returned no text, or refused to answer"))
        }
        AskStatus::Answered | AskStatus::NoEvidence | AskStatus::NotFound | AskStatus::Uncited => {
            return None;
        }
    };
    Some(Error::new(code, message))
}

/// Formats the answer and its sources for people.
fn for_people(report: &AskReport, conversation: &str) -> String {
    let mut out = match &report.answer {
        Some(answer) => format!("{}\n\n", answer.trim_end()),
        None if report.status == AskStatus::NoEvidence => {
            let cut = "the sources exceed the token limit\n";
            let none = "no message or summary matches the question\n";
            return (if report.truncated { cut } else { none }).to_owned();
        }
        None => "the sources do not contain the answer\n\n".to_owned(),
    };
    for (number, id) in report.cited_ids.iter().enumerate() {
        let place = report.cited_conversations.get(number).filter(|place| *place != conversation);
        let place = place.map(|place| format!("  {place}")).unwrap_or_default();
        let marks = report.withdrawn_ids.as_deref().unwrap_or_default();
        let mark = match marks.iter().find(|marked| marked.id == *id).map(|one| one.withdrawn) {
            Some(Withdrawal::SetAside) => ", set aside",
            Some(Withdrawal::Revision) => ", another form",
            None => "",
        };
        out.push_str(&format!("cited  {id}{mark}{place}\n"));
    }
    if report.status == AskStatus::Uncited {
        out.push_str("cited  nothing; check the answer before you rely on it\n");
    }
    for id in &report.rejected_ids {
        out.push_str(&format!("named, but not read  {id}\n"));
    }
    let conversations = &report.source_conversations;
    let conversations = conversations
        .iter()
        .any(|one| one != conversation)
        .then(|| format!(" of {}", conversations.join(", ")));
    out.push_str(&format!(
        "read  {}{}{}\n",
        count(report.source_tokens, "token"),
        conversations.unwrap_or_default(),
        if report.truncated { "; some sources were not read, or the answer was cut" } else { "" },
    ));
    if let Some(grant) = &report.grant {
        out.push_str(&describe_charge(grant));
    }
    out
}

#[cfg(test)]
mod tests {
    use lcm_host::{ModelFailure, WithdrawnId};

    use super::*;

    fn report(status: AskStatus) -> AskReport {
        AskReport {
            status,
            answer: None,
            cited_ids: Vec::new(),
            cited_conversations: Vec::new(),
            withdrawn_ids: None,
            rejected_ids: Vec::new(),
            source_conversations: vec!["c".to_owned()],
            expanded_summaries: 0,
            source_tokens: 1_234,
            truncated: false,
            completions: 1,
            failure: None,
            grant: None,
            expires_at: None,
        }
    }

    #[test]
    fn people_see_the_answer_then_what_it_cites_and_what_was_read() {
        let answered = AskReport {
            answer: Some("Locker 23 [msg_1].\n".to_owned()),
            cited_ids: vec!["msg_1".to_owned(), "sum_2".to_owned()],
            cited_conversations: vec!["c".to_owned(), "d".to_owned()],
            withdrawn_ids: Some(vec![WithdrawnId {
                id: "msg_1".to_owned(),
                withdrawn: Withdrawal::SetAside,
            }]),
            rejected_ids: vec!["msg_9".to_owned()],
            source_conversations: vec!["c".to_owned(), "d".to_owned()],
            truncated: true,
            ..report(AskStatus::Answered)
        };
        let expected = "Locker 23 [msg_1].\n\ncited  msg_1, set aside\ncited  sum_2  d\n\
            named, but not read  msg_9\n\
            read  1,234 tokens of c, d; some sources were not read, or the answer was cut\n";
        assert_eq!(for_people(&answered, "c"), expected);
        let missing = for_people(&report(AskStatus::NotFound), "c");
        assert_eq!(missing, "the sources do not contain the answer\n\nread  1,234 tokens\n");
        let nothing = for_people(&report(AskStatus::NoEvidence), "c");
        assert_eq!(nothing, "no message or summary matches the question\n");
    }

    #[test]
    fn no_answer_is_a_failure_when_the_model_is_to_blame_or_another_question_is_open() {
        let of = |status| failure(&report(status)).map(|error| error.code);
        for status in [AskStatus::ModelFailed, AskStatus::TimedOut, AskStatus::NoAnswer] {
            assert_eq!(of(status), Some(Code::CompletionFailed));
        }
        assert_eq!(of(AskStatus::Busy), Some(Code::Conflict));
        for status in
            [AskStatus::Answered, AskStatus::Uncited, AskStatus::NotFound, AskStatus::NoEvidence]
        {
            assert_eq!(of(status), None);
        }
        let (code, message) = ("auth".to_owned(), "key refused".to_owned());
        let failed = AskReport {
            failure: Some(ModelFailure { code, message }),
            ..report(AskStatus::ModelFailed)
        };
        let said = failure(&failed).map(|error| error.message);
        assert_eq!(said.as_deref(), Some("the model answered `auth`: key refused"));
    }
}
