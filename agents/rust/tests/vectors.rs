//! The agent passes the protocol's test vectors; agents/vectors/README.md describes their format.

mod agent;

use agent::Agent;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn matches(expected: &Value, got: &Value) -> bool {
    match expected {
        Value::String(any) if any == "$any" => true,
        Value::Object(rules) if rules.keys().any(|name| name.starts_with('$')) => {
            rules.iter().all(|(rule, value)| holds(rule, value, got))
        }
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| got.get(name).is_some_and(|field| matches(value, field)))
        }
        other => other == got,
    }
}

fn holds(rule: &str, value: &Value, got: &Value) -> bool {
    let number = |value: &Value| value.as_f64().expect("a vector's bound is a number");
    match (rule, value.as_str()) {
        ("$type", Some("string")) => got.is_string(),
        ("$type", Some("integer")) => got.is_i64() || got.is_u64(),
        ("$type", Some("number")) => got.is_number(),
        ("$type", Some("boolean")) => got.is_boolean(),
        ("$min", _) => got.is_number() && number(got) >= number(value),
        ("$max", _) => got.is_number() && number(got) <= number(value),
        _ => panic!("unknown rule {rule}: {value}"),
    }
}

fn run(path: &Path) {
    let mut agent = Agent::start();
    for (number, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{}:{}", path.display(), number + 1);
        let step: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
        if let Some(said) = step.get("send") {
            agent.send(&said.as_str().map_or_else(|| said.to_string(), String::from));
        } else if let Some(expected) = step.get("expect") {
            let got = agent.read();
            assert!(matches(expected, &got), "{place}: expected {expected}, got {got}");
            let flat = got.as_object().is_none_or(|fields| fields.values().all(|v| !v.is_object() && !v.is_array()));
            assert!(flat, "{place}: {got} is not flat");
        } else if let Some(status) = step.get("exit") {
            assert_eq!(agent.end(), status.as_i64().map(|status| status as i32), "{place}");
        } else {
            panic!("{place}: no such step");
        }
    }
}

#[test]
fn the_agent_passes_every_vector() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // Vectors of the Java agent's driver don't apply to this agent.
    let mine = |path: &PathBuf| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jdbc"));
    let files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).filter(mine).collect();
    assert!(files.len() >= 6, "{files:?}");
    files.iter().for_each(|path| run(path));
}

#[test]
fn a_matcher_can_fail() {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert!(matches(&value(r#"{"a":{"$min":1,"$max":2}}"#), &value(r#"{"a":2,"b":0}"#)));
    assert!(!matches(&value(r#"{"a":{"$min":1,"$max":2}}"#), &value(r#"{"a":3}"#)));
    assert!(!matches(&value(r#"{"a":"$any"}"#), &value(r#"{"b":3}"#)));
    assert!(!matches(&value(r#"{"a":{"$type":"integer"}}"#), &value(r#"{"a":"3"}"#)));
    assert!(!matches(&value("null"), &value("{}")));
}
