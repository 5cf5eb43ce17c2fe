//! Requests of a user's own, and what a query tells of their answers.

use super::clients::*;
use super::servers::*;
use crate::draw::Kind;
use crate::program::Program;
use std::sync::{Arc, Mutex};

#[test]
fn a_query_describes_the_response() {
    let port = server(|asked, _| {
        say(match asked.split(' ').nth(1).unwrap() {
            "/chunks" => {
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: br\r\nTransfer-Encoding: \
                 chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n1\r\nf\r\n0\r\n\r\n"
            }
            _ => "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
        })
    });
    let asked = |path: &str| arm(port, "").query(&format!("GET {path}"), false).unwrap();
    let chunks = asked("/chunks");
    assert_eq!(chunks.columns, "status\tlocation\tserver\tbody\tlength\ttype\tencoding\tcloses\tstretch");
    assert_eq!(chunks.text, "200\t\t\tabcdef\t6\ttext/html; charset=utf-8\tbr\t\tcde");
    assert_eq!(asked("/").text, "200\t\t\tabc\t3\t\t\tcloses\tabc");
}

#[test]
fn a_requests_own_headers_and_body_go_with_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let port = server({
        let seen = seen.clone();
        move |asked, _| {
            seen.lock().unwrap().push(asked.to_string());
            say(OK)
        }
    });
    let mut program = Program::new("p".into());
    program.add_variable("v".into(), number()).unwrap();
    program.add_transaction("t".into(), 1).unwrap();
    program.add_statement("t", None, "PATCH /a".into(), "v", false).unwrap();
    program.complete_request("t", "Content-Type: text/plain\nX-Id: n$1".into(), Some("$1 costs $2".into()));
    let script = Arc::new(program.script("a").unwrap());
    arm(port, r#","headers":"x-id: 5\nCookie: c""#).slice(&script, &so_many(1), &mut || ()).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen[0].starts_with("PATCH /a HTTP/1.1\r\n"), "{}", seen[0]);
    for line in
        ["\r\nContent-Type: text/plain\r\n", "\r\nX-Id: n7\r\n", "\r\nCookie: c\r\n", "\r\nContent-Length: 11\r\n"]
    {
        assert_eq!(seen[0].matches(line).count(), 1, "{line:?} {}", seen[0]);
    }
    assert!(seen[0].ends_with("\r\n\r\n$1 costs $2") && !seen[0].contains("x-id"), "{}", seen[0]);
}

#[test]
fn values_stand_where_they_are_named() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let port = server({
        let seen = seen.clone();
        move |asked, _| {
            seen.lock().unwrap().push(asked.to_string());
            say(OK)
        }
    });
    run(&mut *arm(port, ""), &["POST /a?n=$1&m=$1 n=$1;$", "GET /$1"], number(), 1);
    run(&mut *arm(port, ""), &["POST /$1 $1"], Kind::Constant { value: "ä b\r\n".into() }, 1);
    let seen = seen.lock().unwrap();
    assert!(seen[0].starts_with("POST /a?n=7&m=7 HTTP/1.1\r\n"), "{}", seen[0]);
    assert!(seen[0].ends_with("Content-Length: 5\r\n\r\nn=7;$"), "{}", seen[0]);
    assert!(seen[1].starts_with("GET /7 HTTP/1.1\r\n"), "{}", seen[1]);
    assert!(seen[2].starts_with("POST /%C3%A4%20b%0D%0A HTTP/1.1\r\n"), "{}", seen[2]);
    assert!(seen[2].ends_with("Content-Length: 6\r\n\r\nä b\r\n"), "{}", seen[2]);
}
