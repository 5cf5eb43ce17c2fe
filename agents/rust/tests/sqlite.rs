//! On real files, only the key differs between the arms.

mod agent;

use agent::Agent;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const CANARY: &str = "canary-7f3a9c51-sings-in-clear";
const KEY: &str = "2dd29ca851e7b56e4697b0e1f08507293d761a05ce4d1b628663f411a8086d99";

/// A test's own directory, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ciphercost-agent-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Whether any file holds the canary.
    fn sees_canary(&self) -> bool {
        let holds = |path: &Path| std::fs::read(path).unwrap().windows(CANARY.len()).any(|w| w == CANARY.as_bytes());
        std::fs::read_dir(&self.0).unwrap().any(|entry| holds(&entry.unwrap().path()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Sends a message and returns its answer, skipping a `counting` event.
fn ask(agent: &mut Agent, message: Value) -> Value {
    agent.send(&message.to_string());
    let answer = agent.read();
    if answer["type"] == "counting" { agent.read() } else { answer }
}

fn greeted() -> Agent {
    let mut agent = Agent::start();
    ask(&mut agent, json!({"type": "hello", "protocol": 1}));
    agent
}

fn connect(agent: &mut Agent, arm: &str, folder: &Folder, more: Value) -> Value {
    let path = folder.0.join("db").to_string_lossy().into_owned();
    let pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF";
    let mut message = json!({"type": "connect", "arm": arm, "driver": "sqlite", "path": path, "pragmas": pragmas});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask(agent, message)
}

fn query(agent: &mut Agent, arm: &str, sql: &str) -> Value {
    ask(agent, json!({"type": "query", "arm": arm, "sql": sql}))
}

const FILL: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, x REAL, note TEXT);
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)
    INSERT INTO t SELECT i, i * 7, i / 8.0, CASE WHEN i % 3 THEN 'note ' || i END FROM c";

#[test]
fn the_plain_file_holds_the_canary_and_the_keyed_file_does_not() {
    let (plain, keyed, mut agent) = (Folder::new("plain"), Folder::new("keyed"), greeted());
    assert_eq!(connect(&mut agent, "plain", &plain, json!({"reserve": 80}))["encrypted"], false);
    let connected = connect(&mut agent, "encrypted", &keyed, json!({"key": KEY}));
    assert_eq!((&connected["encrypted"], &connected["protocol"]), (&json!(true), &json!("sqlcipher")), "{connected}");
    assert!(connected["cipher"].as_str().unwrap().contains("AES-256"), "{connected}");
    for arm in ["plain", "encrypted"] {
        query(&mut agent, arm, &format!("CREATE TABLE secret (word TEXT); INSERT INTO secret VALUES ('{CANARY}')"));
        assert_eq!(query(&mut agent, arm, "SELECT word FROM secret")["text"], CANARY);
        query(&mut agent, arm, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    assert!(plain.sees_canary());
    assert!(!keyed.sees_canary());
}

#[test]
fn both_arms_have_the_same_pages_and_return_the_same_rows() {
    let (plain, keyed, mut agent) = (Folder::new("plain-rows"), Folder::new("keyed-rows"), greeted());
    connect(&mut agent, "plain", &plain, json!({"reserve": 80, "connections": 2}));
    connect(&mut agent, "encrypted", &keyed, json!({"key": KEY, "connections": 2}));
    ask(&mut agent, json!({"type": "program", "name": "p"}));
    ask(&mut agent, json!({"type": "variable", "name": "id", "kind": "zipfian", "low": 1, "high": 1000, "skew": 0.8}));
    ask(&mut agent, json!({"type": "transaction", "name": "t", "weight": 1}));
    let sql = "SELECT * FROM t WHERE id BETWEEN $1 AND $1 + 2";
    ask(&mut agent, json!({"type": "statement", "transaction": "t", "sql": sql, "parameters": "id"}));
    let answers = ["plain", "encrypted"].map(|arm| {
        query(&mut agent, arm, FILL);
        let pages = query(&mut agent, arm, "PRAGMA page_count");
        let slice = ask(&mut agent, json!({"type": "slice", "arm": arm, "operations": 300, "seed": 5}));
        assert_eq!((&slice["operations"], &slice["errors"]), (&json!(300), &json!(0)), "{slice}");
        assert_eq!(slice["threads"], 2);
        (pages["text"].clone(), slice["rows"].clone(), slice["checksum"].clone())
    });
    assert_eq!(answers[0], answers[1]);
    let other = ask(&mut agent, json!({"type": "slice", "arm": "plain", "operations": 300, "seed": 6}));
    assert_ne!(other["checksum"], answers[0].2);
}

#[test]
fn a_wrong_key_a_missing_key_and_a_needless_key_are_refused() {
    let (plain, keyed, mut agent) = (Folder::new("plain-key"), Folder::new("keyed-key"), greeted());
    for (arm, folder, more) in [("plain", &plain, json!({})), ("encrypted", &keyed, json!({"key": KEY}))] {
        assert_eq!(connect(&mut agent, arm, folder, more)["type"], "connected");
        query(&mut agent, arm, FILL);
        ask(&mut agent, json!({"type": "disconnect", "arm": arm}));
    }
    let wrong = KEY.replace('2', "3");
    for (folder, more) in [(&keyed, json!({"key": wrong})), (&keyed, json!({})), (&plain, json!({"key": KEY}))] {
        assert_eq!(connect(&mut agent, "x", folder, more.clone())["code"], "connect", "{more}");
    }
}

#[test]
fn a_passphrase_opens_what_it_made_and_no_other_does() {
    let folder = Folder::new("passphrase");
    let mut agent = greeted();
    let fast = "PRAGMA kdf_iter=1000";
    let given = |key: &str, pragmas: &str| json!({"key": key, "passphrase": true, "pragmas": pragmas});
    let made = connect(&mut agent, "made", &folder, given("it's a \"phrase\"", fast));
    assert_eq!(made["encrypted"], true, "{made}");
    assert_eq!(query(&mut agent, "made", FILL)["type"], "rows");
    assert!(!folder.sees_canary());
    let again = connect(&mut agent, "again", &folder, given("it's a \"phrase\"", fast));
    assert_eq!(again["type"], "connected", "{again}");
    for (key, pragmas) in [("its a phrase", fast), ("it's a \"phrase\"", "PRAGMA kdf_iter=1001")] {
        let refused = connect(&mut agent, "other", &folder, given(key, pragmas));
        assert_eq!(refused["code"], "connect", "{refused}");
    }
    for wrong in [json!({"passphrase": true}), given("", fast), given("x'00'", fast)] {
        assert_eq!(connect(&mut agent, "wrong", &folder, wrong)["code"], "bad-message");
    }
}

#[test]
fn the_cipher_names_what_authenticates_pages_and_nothing_where_nothing_does() {
    let mut agent = greeted();
    for (pragma, cipher) in [
        ("PRAGMA cipher_use_hmac=OFF", "AES-256-CBC"),
        ("PRAGMA cipher_hmac_algorithm=HMAC_SHA1", "AES-256-CBC HMAC_SHA1"),
    ] {
        let folder = Folder::new(if cipher.len() > 11 { "hmac" } else { "bare" });
        let connected = connect(&mut agent, "arm", &folder, json!({"key": KEY, "pragmas": pragma}));
        assert_eq!(connected["cipher"], cipher, "{connected}");
    }
}

#[test]
fn each_operation_opens_a_database_of_its_own_where_asked() {
    let (keyed, mut agent) = (Folder::new("per-request"), greeted());
    connect(&mut agent, "loader", &keyed, json!({"key": KEY}));
    query(&mut agent, "loader", FILL);
    connect(&mut agent, "encrypted", &keyed, json!({"key": KEY, "per_request": true}));
    ask(&mut agent, json!({"type": "program", "name": "p"}));
    ask(&mut agent, json!({"type": "transaction", "name": "t", "weight": 1}));
    let sql = "SELECT note FROM t WHERE id = 1";
    ask(&mut agent, json!({"type": "statement", "transaction": "t", "sql": sql, "parameters": ""}));
    let slice = ask(&mut agent, json!({"type": "slice", "arm": "encrypted", "operations": 20, "seed": 1}));
    assert_eq!((&slice["operations"], &slice["connects"]), (&json!(20), &json!(20)), "{slice}");
    assert_eq!(query(&mut agent, "encrypted", "SELECT count(*) FROM t")["text"], "1000");
}
