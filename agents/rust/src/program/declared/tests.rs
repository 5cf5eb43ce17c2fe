use super::*;
use crate::envelope;
use crate::program::{Next, Operation, Parameter, Room};

fn program() -> Program {
    let mut program = Program::new("mixed".into());
    program.add_variable("a".into(), Kind::Uniform { low: 1, high: 9 }).unwrap();
    program.add_variable("n".into(), Kind::Sequence { low: 1 }).unwrap();
    program.add_transaction("read".into(), 3).unwrap();
    program.add_transaction("write".into(), 1).unwrap();
    program.add_statement("read", None, "SELECT $1".into(), "a", false).unwrap();
    program.add_statement("write", Some("plain".into()), "INSERT $1, $2".into(), "n a", false).unwrap();
    program.add_statement("write", Some("encrypted".into()), "INSERT e($1)".into(), "n", false).unwrap();
    program
}

#[test]
fn transactions_are_drawn_by_weight() {
    let script = program().script("plain").unwrap();
    let mut operation = Operation::default();
    let reads = (0..10_000).filter(|number| {
        script.draw(1, *number, &mut operation);
        operation.first == 0
    });
    let reads = reads.count();
    assert!((7_300..7_700).contains(&reads), "{reads}");
}

#[test]
fn an_arm_runs_its_own_statements_only() {
    let mut program = program();
    let sql = |script: Script| script.statements.into_iter().map(|s| s.sql).collect::<Vec<_>>();
    assert_eq!(sql(program.script("plain").unwrap()), ["SELECT $1", "INSERT $1, $2"]);
    assert_eq!(sql(program.script("encrypted").unwrap()), ["SELECT $1", "INSERT e($1)"]);
    assert_eq!(program.script("loader").unwrap_err().code, "no-program");
}

#[test]
fn a_sequence_continues_across_slices_and_each_arm_has_its_own() {
    let mut program = Program::new("p".into());
    program.add_variable("n".into(), Kind::Sequence { low: 5 }).unwrap();
    program.add_transaction("t".into(), 1).unwrap();
    program.add_statement("t", None, "$1".into(), "n", false).unwrap();
    let mut draw = |arm: &str| {
        let mut operation = Operation::default();
        program.script(arm).unwrap().draw(0, 0, &mut operation);
        match operation.parameter(0) {
            Parameter::Integer(value) => value,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([draw("plain"), draw("plain"), draw("encrypted"), draw("plain")], [5, 6, 5, 7]);
}

#[test]
fn statements_that_take_each_value_run_once_for_each_of_them() {
    let mut program = Program::new("p".into());
    program.add_variable("id".into(), Kind::Each { low: 1, high: 3 }).unwrap();
    program.add_variable("again".into(), Kind::Each { low: 7, high: 8 }).unwrap();
    program.add_variable("x".into(), Kind::Uniform { low: 5, high: 5 }).unwrap();
    program.add_transaction("t".into(), 1).unwrap();
    for (sql, names) in [("a", ""), ("b", "id"), ("c", "x id"), ("d", "again"), ("e", "x"), ("f", "id")] {
        program.add_statement("t", None, sql.into(), names, false).unwrap();
    }
    let refused = program.add_statement("t", None, "g".into(), "id again", false).unwrap_err();
    assert_eq!(refused.code, "bad-message");
    let script = program.script("plain").unwrap();
    let mut operation = Operation::default();
    for _ in 0..2 {
        script.draw(1, 0, &mut operation);
        let (mut ran, mut at) = (Vec::new(), operation.first);
        while at < operation.last {
            let statement = &script.statements[at];
            let values = statement.parameters.iter().map(|variable| match operation.parameter(*variable) {
                Parameter::Integer(value) => value,
                other => panic!("{other:?}"),
            });
            ran.push(format!("{}{:?}", statement.sql, values.collect::<Vec<_>>()));
            at = script.after(&operation, at);
        }
        let wanted = "a[] b[1] c[5, 1] b[2] c[5, 2] b[3] c[5, 3] d[7] d[8] e[5] f[1] f[2] f[3]";
        assert_eq!(ran.join(" "), wanted);
    }
}

/// The statements that an operation runs, with the first value of each.
fn runs(program: &mut Program, arm: &str, seed: u64) -> Result<Vec<String>> {
    let (script, mut operation) = (program.script(arm)?, Operation::default());
    script.draw(seed, 0, &mut operation);
    let mut ran = Vec::new();
    loop {
        ran.push(match script.advance(&mut operation)? {
            Next::Run(number) => {
                let statement = &script.statements[number];
                let value = statement.parameters.first().map(|variable| operation.parameter(*variable));
                format!("{}{value:?}", statement.sql)
            }
            Next::End => return Ok(ran),
            other => format!("{other:?}"),
        });
    }
}

fn flow() -> Program {
    let mut program = Program::new("p".into());
    program.add_variable("a".into(), Kind::Computed).unwrap();
    program.add_variable("n".into(), Kind::Sequence { low: 7 }).unwrap();
    program.add_transaction("t".into(), 1).unwrap();
    program
}

fn add(program: &mut Program, steps: Vec<Step>) {
    for step in steps {
        program.add_step("t", None, step).unwrap();
    }
}

#[test]
fn branches_run_the_statements_of_the_first_condition_that_holds() {
    for (value, wanted) in [(9, "one[]None"), (5, "two[]None"), (1, "three[]None"), (0, "")] {
        let mut program = flow();
        let set = Step::Set { variable: 0, to: program.expression(&value.to_string()).unwrap() };
        let above = |least: i64, program: &Program| program.expression(&format!("(< {least} :a)")).unwrap();
        let steps = [Step::If(above(7, &program)), Step::ElseIf(above(3, &program)), Step::ElseIf(above(0, &program))];
        add(&mut program, vec![set]);
        for (step, sql) in steps.into_iter().zip(["one[]", "two[]", "three[]"]) {
            add(&mut program, vec![step]);
            program.add_statement("t", None, sql.into(), "", false).unwrap();
        }
        add(&mut program, vec![Step::Else]);
        let inner = program.expression(":a").unwrap();
        add(&mut program, vec![Step::If(inner)]);
        program.add_statement("t", None, "never".into(), "", false).unwrap();
        add(&mut program, vec![Step::EndIf, Step::EndIf]);
        program.add_statement("t", None, "end".into(), "n a", false).unwrap();
        let ran = runs(&mut program, "plain", 1).unwrap().join(" ");
        assert_eq!(ran, format!("{wanted} endSome(Integer(7))").trim_start());
    }
}

#[test]
fn a_step_may_be_one_arms_alone_and_statements_keep_their_numbers() {
    let mut program = flow();
    let five = program.expression("5").unwrap();
    program.add_step("t", Some("encrypted".into()), Step::Set { variable: 0, to: five.clone() }).unwrap();
    program
        .add_step("t", Some("plain".into()), Step::Set { variable: 0, to: program.expression("6").unwrap() })
        .unwrap();
    program.add_statement("t", Some("encrypted".into()), "e".into(), "a", false).unwrap();
    program.add_statement("t", Some("plain".into()), "p".into(), "a", false).unwrap();
    program.add_statement("t", None, "both".into(), "a", false).unwrap();
    add(&mut program, vec![Step::Sleep(five)]);
    assert_eq!(runs(&mut program, "plain", 1).unwrap().join(" "), "pSome(Integer(6)) bothSome(Integer(6)) Sleep(5000)");
    assert_eq!(
        runs(&mut program, "encrypted", 1).unwrap().join(" "),
        "eSome(Integer(5)) bothSome(Integer(5)) Sleep(5000)"
    );
}

#[test]
fn an_operation_begins_without_the_values_of_the_last_one_and_draws_the_same_again() {
    let mut program = flow();
    let drawn = program.expression("(random 1 1000000)").unwrap();
    program.add_statement("t", None, "early".into(), "", false).unwrap();
    add(&mut program, vec![Step::Set { variable: 0, to: drawn }]);
    program.add_statement("t", None, "late".into(), "a", false).unwrap();
    let (script, mut operation) = (program.script("plain").unwrap(), Operation::default());
    let mut values = Vec::new();
    for number in [0, 1, 0] {
        script.draw(9, number, &mut operation);
        assert_eq!(script.advance(&mut operation).unwrap(), Next::Run(0));
        assert!(operation.is_unset(0));
        assert_eq!(script.advance(&mut operation).unwrap(), Next::Run(1));
        values.push(format!("{:?}", operation.parameter(0)));
    }
    assert!(values[0] == values[2] && values[0] != values[1], "{values:?}");
    script.draw_again(&mut operation);
    assert!(operation.is_unset(0));
    let mut counted = flow();
    counted.add_statement("t", None, "c".into(), "n", false).unwrap();
    let script = counted.script("plain").unwrap();
    for wanted in [7, 8] {
        script.draw(9, 0, &mut operation);
        for _ in 0..2 {
            assert_eq!(operation.parameter(1), Parameter::Integer(wanted));
            script.draw_again(&mut operation);
        }
    }
    let mut early = flow();
    early.add_statement("t", None, "early".into(), "a", false).unwrap();
    let one = early.expression("1").unwrap();
    add(&mut early, vec![Step::Set { variable: 0, to: one }]);
    assert_eq!(runs(&mut early, "plain", 1).unwrap_err().text, "variable a has no value yet");
}

#[test]
fn steps_that_do_not_fit_together_are_refused() {
    let one = Expression::read("1", &|_| None).unwrap();
    for steps in [
        vec![Step::If(one.clone())],
        vec![Step::EndIf],
        vec![Step::Else, Step::EndIf],
        vec![Step::If(one.clone()), Step::Else, Step::Else, Step::EndIf],
        vec![Step::If(one.clone()), Step::Else, Step::ElseIf(one.clone()), Step::EndIf],
        vec![Step::StartPipeline],
        vec![Step::StartPipeline, Step::StartPipeline],
        vec![Step::Sync],
        vec![Step::EndPipeline],
    ] {
        let mut program = flow();
        add(&mut program, steps.clone());
        assert_eq!(program.script("plain").unwrap_err().code, "no-program", "{steps:?}");
    }
    let mut program = flow();
    assert!(program.add_step("t", None, Step::Set { variable: 1, to: one.clone() }).is_err(), "not computed");
    assert!(program.add_step("u", None, Step::Else).is_err(), "no transaction");
    program.add_variable("id".into(), Kind::Each { low: 1, high: 2 }).unwrap();
    program.add_statement("t", None, "x".into(), "id", false).unwrap();
    add(&mut program, vec![Step::Sleep(one)]);
    assert_eq!(program.script("plain").unwrap_err().code, "no-program");
}

#[test]
fn a_statement_names_what_is_declared() {
    let mut program = program();
    assert_eq!(program.add_statement("read", None, "x".into(), "zzz", false).unwrap_err().code, "bad-message");
    assert_eq!(program.add_statement("zzz", None, "x".into(), "a", false).unwrap_err().code, "bad-message");
}

#[test]
fn an_entry_of_a_blind_index_is_the_same_for_equal_texts_and_its_text_is_drawn_like_the_others() {
    let mut program = Program::new("p".into());
    let key = Key::read("aes256-gcm", &"5a".repeat(32), Some(&"a5".repeat(32))).unwrap();
    program.set_cipher(key).unwrap();
    program.add_variable("text".into(), Kind::Constant { value: "Alagoas".into() }).unwrap();
    for bits in [0, 12, 264] {
        assert!(program.add_made("bad".into(), "text", Some(bits)).is_err(), "{bits}");
    }
    program.add_made("entry".into(), "text", Some(64)).unwrap();
    assert!(program.add_made("again".into(), "entry", Some(64)).is_err());
    program.add_transaction("t".into(), 1).unwrap();
    program.add_statement("t", None, "$1".into(), "entry", true).unwrap();
    assert!(program.keep_rows("t", "entry").is_err());
    program.add_statement("t", None, "$1".into(), "entry", true).unwrap();
    program.keep_rows("t", "text").unwrap();
    let (script, mut operation) = (program.script("encrypted").unwrap(), Operation::default());
    envelope::enter(script.cipher.as_ref()).unwrap();
    script.draw(0, 0, &mut operation);
    let parameter = |at| operation.parameter(at);
    assert_eq!(operation.sealed, 0);
    assert_eq!(parameter(script.statements[0].parameters[0]), Parameter::Bytes(&ENTRY));
    assert_eq!(operation.keep.map(parameter), Some(Parameter::Text(b"Alagoas")));
    // A transaction keeps rows by one value.
    program.add_statement("t", None, "SELECT 2".into(), "", true).unwrap();
    assert_eq!(program.script("encrypted").unwrap_err().code, "no-program");
}
/// Made by another implementation (Python's hmac): key 32 × a5, "Alagoas".
const ENTRY: [u8; 8] = [0xa8, 0xba, 0x1e, 0x44, 0xdc, 0xfc, 0x91, 0xa7];

#[test]
fn what_is_sealed_is_drawn_and_sealed_anew_for_each_operation() {
    let mut program = Program::new("p".into());
    program.add_variable("n".into(), Kind::Sequence { low: 41 }).unwrap();
    assert_eq!(program.add_made("s".into(), "n", None).unwrap_err().code, "bad-message", "without a cipher");
    assert!(program.add_transaction("t".into(), 1).is_ok());
    assert!(program.add_statement("t", None, "SELECT 1".into(), "", true).is_err(), "without a cipher");
    let key = Key::read("aes256-gcm", &"5a".repeat(32), None).unwrap();
    program.set_cipher(key.clone()).unwrap();
    assert!(program.set_cipher(key.clone()).is_err(), "twice");
    program.add_variable("text".into(), Kind::Text { length: 20 }).unwrap();
    program.add_made("s".into(), "n", None).unwrap();
    program.add_made("st".into(), "text", None).unwrap();
    assert!(program.add_made("ss".into(), "s", None).is_err(), "sealed twice");
    program.add_statement("t", Some("encrypted".into()), "$1, $2".into(), "s st", false).unwrap();
    program.add_statement("t", Some("plain".into()), "$1, $2".into(), "n text", false).unwrap();
    let mut draw = |arm: &str| {
        let (script, mut operation) = (program.script(arm).unwrap(), Operation::default());
        envelope::enter(script.cipher.as_ref()).unwrap();
        script.draw(0, 0, &mut operation);
        let values = script.statements[0].parameters.iter().map(|at| match operation.parameter(*at) {
            Parameter::Text(value) | Parameter::Bytes(value) => value.to_vec(),
            other => other.text(&mut Room::default()).unwrap().to_vec(),
        });
        (operation.sealed, values.collect::<Vec<_>>())
    };
    let (none, clear) = draw("plain");
    let ((two, first), (_, second)) = (draw("encrypted"), draw("encrypted"));
    assert_eq!((none, two), (0, 2));
    assert!(first[1] != second[1] && first[1][2..14] != second[1][2..14]);
    envelope::with(|vault, row| {
        vault.put(&first[0], row).unwrap();
        vault.put(&second[0], row).unwrap();
        assert_eq!(row, b"4142", "both arms draw the same, and a sequence goes on");
        row.clear();
        vault.put(&first[1], row).unwrap();
        assert_eq!(*row, clear[1]);
    });
}
