//! What a broken controller could send: lines of requests. Nothing connects and no load runs.

use crate::message::{Answer, Line, Request};
use crate::program::Operation;
use crate::session::Session;

/// Texts above this length are drawn as long as they are asked for: no finding.
const LONGEST_TEXT: usize = 4096;
const DRAWN: u64 = 3;

pub fn parse(data: &[u8]) {
    let mut session = Session::default();
    for line in data.split(|byte| *byte == b'\n') {
        match Line::read(line).and_then(Line::request) {
            Ok(Request::Connect(connect)) => {
                if let Err(failure) = connect.check() {
                    said(&failure.into());
                }
            }
            Ok(Request::Floor(_)) => {}
            Ok(Request::Variable(asked)) if asked.length.is_some_and(|length| length > LONGEST_TEXT) => {}
            _ => said(&session.answer(line, &mut said).0),
        }
    }
    draw(&mut session);
}

/// An answer is one line of JSON that a reader understands.
fn said(answer: &Answer) {
    let line = serde_json::to_string(answer).expect("every answer is JSON");
    assert!(!line.contains('\n'), "{line}");
    let read: serde_json::Value = serde_json::from_str(&line).expect("our own JSON is read");
    assert!(read["type"].is_string(), "{line}");
}

/// Draws operations of the program that the lines declare.
fn draw(session: &mut Session) {
    for arm in ["a", "plain"] {
        let Ok(script) = session.program().and_then(|program| program.script(arm)) else { continue };
        if crate::envelope::enter(script.cipher.as_ref()).is_err() {
            continue;
        }
        let mut operation = Operation::default();
        for number in 0..DRAWN {
            script.draw(1, number, &mut operation);
            for statement in &script.statements[operation.first..operation.last] {
                for variable in &statement.parameters {
                    let _ = operation.parameter(*variable);
                }
            }
        }
    }
    crate::envelope::enter(None).expect("no key, no cipher");
}
