//! HTTP/1.1, and behaviour that all versions share.

use super::clients::*;
use super::servers::*;
use crate::cut_slices::cut_slices;
use crate::drivers::http::reader;
use crate::load::Plan;
use crate::xxh3::xxh3_64_with_seed;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

#[test]
fn a_response_is_read_to_its_end_however_it_says_where_that_is() {
    let port = server(|asked, _| match asked.split(' ').nth(1).unwrap() {
        "/length" => say(OK),
        "/chunks" => {
            say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n003;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n")
        }
        "/close" => last("HTTP/1.1 200 OK\r\n\r\nhello"),
        "/old" => last("HTTP/1.0 200 OK\r\n\r\nhello"),
        "/old-kept" => say("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"),
        "/interim" => say(&format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{OK}")),
        "/announced" => last("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"),
        // Doesn't announce it.
        _ => last(OK),
    });
    let hash = xxh3_64_with_seed(b"hello", 200);
    for way in WAYS {
        for path in ["length", "chunks", "close", "old", "old-kept", "interim", "announced", "closes"] {
            let tally = run(&mut *arm(port, way), &[&format!("GET /{path}")], number(), 4);
            assert_eq!((tally.rows, tally.errors), (4, 0), "{way} {path}: {}", tally.first_error);
            assert_eq!(tally.checksum, hash.wrapping_mul(4), "{way} {path}");
        }
    }
}

#[test]
fn a_malformed_response_fails_its_operation_and_not_the_slice() {
    let port = server(|asked, _| match asked.split(' ').nth(1).unwrap() {
        "/short" => last("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
        "/long" => say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello"),
        "/lengths" => say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello"),
        "/length" => say("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"),
        "/chunks" => say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloo0\r\n\r\n"),
        "/no-chunk" => say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n0\r\n\r\n"),
        "/cut-chunks" => last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        "/coded" => say("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        "/cut-head" => last("HTTP/1.1 200 OK\r\nContent-Le"),
        "/nothing" => last(""),
        "/garbage" => say("hello, this is no HTTP\r\n\r\n"),
        "/head" => say(&format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(70_000))),
        "/switch" => say("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        "/none" => say("HTTP/1.1 204 No Content\r\n\r\nhello"),
        "/missing" => say("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello"),
        "/moved" => say("HTTP/1.1 302 Found\r\nLocation: /length\r\nContent-Length: 0\r\n\r\n"),
        "/later" => last("HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n"),
        _ => Reply::Silence,
    });
    for way in WAYS {
        for (path, kind, words) in [
            ("short", "closed-early", "GET /short: the connection ended 4 bytes before the body does"),
            ("long", "malformed", "unexpected bytes after the response"),
            ("lengths", "malformed", "Content-Length"),
            ("length", "malformed", "Content-Length"),
            ("chunks", "malformed", "its chunks are malformed"),
            ("no-chunk", "malformed", "its chunks are malformed"),
            ("cut-chunks", "closed-early", "before the last chunk"),
            ("coded", "malformed", "gzip, chunked"),
            ("cut-head", "closed-early", "within the response's head"),
            ("nothing", "closed-early", "before any response"),
            ("garbage", "malformed", "not an HTTP response"),
            ("head", "malformed", "longer than 64 KiB"),
            ("switch", "malformed", "status 101"),
            ("none", "malformed", "unexpected bytes after the response"),
            ("missing", "status-404", "status-404: GET /missing: 404 Not Found"),
            ("moved", "status-302", "GET /moved: 302 Found to /length (redirects are not followed)"),
            ("later", "status-503", "GET /later: 503"),
        ] {
            fails(port, way, path, kind, words);
        }
    }
}

#[test]
fn an_answer_to_head_has_no_body_whatever_its_length() {
    let port = server(|asked, _| match asked.starts_with("HEAD /1 ") {
        true => say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        false => say(OK),
    });
    assert_eq!(outcome(port, "", "HEAD /1").0, 4);
    assert_eq!(outcome(port, "", "HEAD /2").1, "malformed=4");
}

#[test]
fn a_silent_server_times_out() {
    let port = server(|_, _| Reply::Silence);
    for way in &WAYS[..2] {
        let began = crate::clock::now_ns();
        let mut arm = arm_with(IN_A_MOMENT, port, way);
        let tally = run(&mut *arm, &["GET /"], number(), 2);
        assert_eq!(tally.kinds.spell(), "timeout=2", "{}", tally.first_error);
        assert!(tally.first_error.contains("sent nothing for 1 seconds"), "{}", tally.first_error);
        assert!(crate::clock::now_ns() - began >= SECOND_NS);
        assert_eq!(arm.query("GET /", false).unwrap_err().code, "timeout");
    }
}

#[test]
fn a_connection_that_was_closed_is_opened_anew_within_the_request() {
    // Each connection serves three requests: either the third announces it, or the fourth finds it closed.
    for announced in [true, false] {
        let port = server(move |_, count| match count {
            2 if announced => last("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"),
            2 => last(OK),
            _ => say(OK),
        });
        for way in &WAYS[..2] {
            let tally = run(&mut *arm(port, way), &["GET /"], number(), 30);
            assert_eq!((tally.rows, tally.errors), (30, 0), "{}", tally.first_error);
            assert!((8..=10).contains(&tally.traffic.connects), "{} connections", tally.traffic.connects);
            assert!(tally.traffic.bytes_received >= 30 * OK.len() as u64 - 200, "{:?}", tally.traffic);
        }
    }
}

#[test]
fn a_request_has_its_headers() {
    let port = server(|asked, _| {
        let body = asked.replace("\r\n", "|");
        Reply::Say(format!("HTTP/1.1 200 OK\r\nServer: me\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into())
    });
    let asked = |fields: &str, sql: &str| begun(&arm(port, fields).query(sql, false).unwrap().text, 4);
    let common = "User-Agent: ciphercost|Accept: */*|";
    assert_eq!(asked("", "GET"), format!("200\t\tme\tGET / HTTP/1.1|Host: 127.0.0.1:{port}|{common}|"));
    let named = r#","authority":"shop.example","path":"/start""#;
    assert_eq!(asked(named, "DELETE"), format!("200\t\tme\tDELETE /start HTTP/1.1|Host: shop.example|{common}|"));
    let post = format!(
        "200\t\tme\tPOST / HTTP/1.1|Host: x|{common}Content-Type: application/json|Content-Length: 7||{{\"a\":1}}"
    );
    assert_eq!(asked(r#","authority":"x""#, "POST / {\"a\":1}"), post);
    let put = format!("200\t\tme\tPUT / HTTP/1.1|Host: x|{common}Connection: close|Content-Length: 0||");
    assert_eq!(asked(r#","authority":"x","per_request":true"#, "PUT /"), put);
    let own = r#","authority":"x","headers":"Cookie: a=$1\nACCEPT: text/html\nContent-Type: text/plain""#;
    let get = "200\t\tme\tGET / HTTP/1.1|Host: x|User-Agent: ciphercost|Cookie: a=$1|ACCEPT: text/html||";
    assert_eq!(asked(own, "GET /"), get);
    assert!(asked(own, "POST / a=b").contains("|Content-Type: text/plain|Content-Length: 3||a=b"));
}

/// The first columns of a query's row.
#[test]
fn clear_requests_go_to_the_other_server_on_a_connection_of_their_own() {
    let other = server(|_, count| {
        say(&format!("HTTP/1.1 200 OK\r\nServer: other\r\nContent-Length: 1\r\n\r\n{}", count.min(9)))
    });
    let port = server(|_, _| say(OK));
    for way in WAYS {
        let mut arm = arm(port, &format!(r#","clear_port":{other}{way}"#));
        assert!(arm.query("CLEAR GET /", false).unwrap().text.starts_with("200\t\tother\t"));
        let tally = run(&mut *arm, &["GET /", "CLEAR GET /", "GET /", "CLEAR GET /"], number(), 10);
        assert_eq!((tally.operations, tally.rows, tally.errors), (10, 40, 0), "{}", tally.first_error);
        assert_eq!(tally.traffic.connects, if way.contains("per_request") { 20 } else { 0 }, "{way}");
        let tally = run(&mut *arm, &["GET /"], number(), 10);
        assert_eq!(tally.traffic.connects, if way.contains("per_request") { 10 } else { 0 }, "{way}");
    }
    let refused = arm(port, "").query("CLEAR GET /", false).unwrap_err();
    assert!(refused.text.contains("clear_port"), "{refused}");
}

#[test]
fn a_server_that_is_down_gives_errors_and_one_that_restarts_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for way in &WAYS[..2] {
        let mut clients = arm(port, way);
        let accepted: Vec<TcpStream> =
            (0..if way.is_empty() { 1 } else { 2 }).map(|_| listener.accept().unwrap().0).collect();
        drop(accepted);
        let gone = listener.try_clone().unwrap();
        drop(gone);
        let tally = thread::scope(|scope| {
            let served = scope.spawn(|| {
                let (stream, _) = listener.accept().unwrap();
                converse(stream, &|_, _| say(OK));
            });
            let tally = run(&mut *clients, &["GET /"], number(), if way.is_empty() { 3 } else { 1 });
            drop(clients);
            served.join().unwrap();
            tally
        });
        assert_eq!(tally.errors, 0, "{}", tally.first_error);
    }
    let mut clients = arm(port, r#","connections":2"#);
    drop(listener);
    let tally = run(&mut *clients, &["GET /"], number(), 20);
    assert_eq!((tally.operations, tally.errors), (0, 20));
    assert!(tally.kinds.spell().contains("connect="), "{}", tally.kinds.spell());
    assert_eq!(clients.query("GET /", false).unwrap_err().code, "connect");
}

#[test]
fn a_large_body_passes_in_both_directions() {
    let body: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7) as u8).collect();
    let hash = xxh3_64_with_seed(&body, 200);
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
    let chunks: Vec<u8> = body
        .chunks(70_001)
        .flat_map(|part| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat())
        .collect();
    let chunked = [&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], &chunks, b"0\r\n\r\n"].concat();
    let reply = move |asked: &str, _: usize| match asked.starts_with("GET /chunks") {
        true => Reply::Say(chunked.clone()),
        false => Reply::Say(answer.clone()),
    };
    let (port, tls_port) = (server(reply.clone()), tls_server(false, b"\x08http/1.1", reply));
    let upload = format!("POST / {}", "x=y&".repeat(2_000_000));
    for way in WAYS {
        for (port, fields) in [(port, ""), (tls_port, r#","tls":"require""#)] {
            let mut arm = arm(port, &format!("{way}{fields}"));
            let tally = run(&mut *arm, &["GET /", "GET /chunks", &upload], number(), 2);
            assert_eq!((tally.rows, tally.errors), (6, 0), "{way}{fields}: {}", tally.first_error);
            assert_eq!(tally.checksum, hash.wrapping_mul(6), "{way}{fields}");
        }
    }
    assert!(arm(port, "").query("GET /", false).is_ok());
}

#[test]
fn a_body_that_ends_with_the_connection_must_end_by_close_notify_under_tls() {
    for (cut, kinds) in [(false, ""), (true, "closed-early=4")] {
        let port = tls_server(cut, b"\x08http/1.1", |_, _| last("HTTP/1.1 200 OK\r\n\r\nhello"));
        for way in WAYS {
            let (_, found, text) = outcome(port, &format!(r#"{way},"tls":"require""#), "GET /");
            assert_eq!(found, kinds, "{way}: {text}");
        }
    }
}

#[test]
fn impossible_tls_is_a_clear_error() {
    let clear = server(|_, _| say(OK));
    let talker = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = talker.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in talker.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 100]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let refused = connect_to(port, r#","tls":"require""#).err().unwrap();
    assert_eq!(refused.code, "tls");
    assert_eq!(refused.text, "the server does not speak TLS on this port (its answer was not encrypted)");
    let _ = clear;
    let own = tls_server(false, b"\x08http/1.1", |_, _| say(OK));
    for how in ["verify-ca", "verify-full"] {
        let refused = connect_to(own, &format!(r#","tls":"{how}","tls_server_name":"localhost""#)).err().unwrap();
        assert_eq!(refused.code, "tls");
        assert!(refused.text.contains("CN=localhost") && refused.text.contains("unknown authority"), "{refused}");
    }
    let connected = connect_to(own, r#","tls":"require""#).unwrap().1;
    assert!(connected.encrypted && connected.application == "http/1.1" && !connected.verified);
}

#[test]
fn think_time_is_excluded_and_the_next_request_follows() {
    let port = server(|_, _| say(OK));
    for way in WAYS {
        let tally = run(&mut *arm(port, way), &["GET /", "THINK $1", "GET /", "THINK $1"], number(), 5);
        assert_eq!((tally.rows, tally.errors), (10, 0), "{way}: {}", tally.first_error);
    }
}

const TWO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo";

#[test]
fn an_unexpected_response_is_not_taken_for_the_next_one() {
    let gone = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (moment, meeting) = (Duration::from_millis(20), Arc::new(Barrier::new(2)));
    let reply = {
        let meeting = meeting.clone();
        move |asked: &str, _: usize| match asked.split(' ').nth(1).unwrap() {
            "/twice" => Reply::Twice(OK.into(), OK.into(), meeting.clone()),
            "/gone" => Reply::Twice(OK.into(), gone.into(), meeting.clone()),
            "/soon" => Reply::Slowly(vec![OK.into(), OK.into()], moment),
            _ => say(TWO),
        }
    };
    let (port, tls_port) = (server(reply.clone()), tls_server(false, b"\x08http/1.1", reply));
    let hash = xxh3_64_with_seed(b"two", 200);
    // Between two slices, or before a query.
    let late_bytes_arrive = || {
        meeting.wait();
        meeting.wait();
        thread::sleep(moment);
    };
    for way in &WAYS[..2] {
        for (port, fields) in [(port, ""), (tls_port, r#","tls":"require""#)] {
            for (path, errors) in [("/twice", 1), ("/gone", 0)] {
                let mut arm = arm(port, &format!("{way}{fields}"));
                assert_eq!(run(&mut *arm, &[&format!("GET {path}")], number(), 1).rows, 1);
                late_bytes_arrive();
                let tally = run(&mut *arm, &["GET /"], number(), 4);
                assert_eq!((tally.rows, tally.errors), (4 - errors, errors), "{way}{fields} {path}");
                assert_eq!(tally.checksum, hash.wrapping_mul(4 - errors), "{way}{fields} {path}");
                assert_eq!(tally.kinds.spell(), if errors == 1 { "malformed=1" } else { "" });
                assert_eq!(run(&mut *arm, &[&format!("GET {path}")], number(), 1).rows, 1);
                late_bytes_arrive();
                let answer = arm.query("GET /", false);
                assert_eq!(answer.is_err(), errors == 1, "{answer:?}");
                assert_eq!(begun(&arm.query("GET /", false).unwrap().text, 4), "200\t\t\ttwo");
            }
        }
    }
    // It arrives while the connection waits for its next operation to be due, unless the server is late.
    let plan = Plan { interval_ns: Some(100e6), ..so_many(4) };
    assert!((0..5).any(|_| {
        let mut arm = arm(port, r#","connections":2"#);
        let tally = arm.slice(&script(&["GET /soon"], number()), &plan, &mut || ()).unwrap().tally;
        let kinds = tally.kinds.spell();
        assert_eq!(tally.rows + tally.errors, 4);
        assert!(kinds.is_empty() || kinds.starts_with("malformed="), "{kinds}");
        tally.errors > 0
    }));
}

#[test]
fn a_second_response_in_the_same_tls_flight_is_not_taken_for_the_next_one() {
    let port = tls_server_in_flights(b"\x08http/1.1", |mut stream| {
        while let Some(asked) = request(&mut stream) {
            stream.get_mut().hold();
            stream.write_all(if asked.starts_with("GET /once ") { TWO } else { OK }.as_bytes()).unwrap();
            if asked.starts_with("GET /twice ") {
                stream.write_all(OK.as_bytes()).unwrap();
            }
            stream.get_mut().release();
        }
    });
    for way in &WAYS[..2] {
        let mut arm = arm(port, &format!(r#","tls":"require"{way}"#));
        let tally = run(&mut *arm, &["GET /twice", "GET /once"], number(), 2);
        assert_eq!((tally.rows, tally.kinds.spell().as_str()), (0, "malformed=2"), "{way}: {}", tally.first_error);
        assert!(tally.first_error.contains("unexpected response"), "{}", tally.first_error);
        assert_eq!(run(&mut *arm, &["GET /once"], number(), 4).rows, 4, "{way}");
    }
}

#[test]
fn operations_that_open_their_own_connections_have_their_bytes_wherever_a_slice_is_cut() {
    let reply = |_: &str, _: usize| {
        thread::sleep(Duration::from_millis(2));
        last(OK)
    };
    let (port, other) = (server(reply), server(reply));
    let mut arm = arm(port, &format!(r#","connections":8,"per_request":true,"clear_port":{other}"#));
    let script = script(&["GET /", "CLEAR GET /"], number());
    let each = arm.slice(&script, &so_many(1), &mut || ()).unwrap().tally.traffic.bytes_sent;
    cut_slices(&mut *arm, &script, &so_many(1), 8, |slice, tally| {
        assert_eq!(tally.traffic.bytes_sent, tally.operations * each, "slice {slice}: {}", tally.operations);
    });
}

#[test]
fn invalid_scripts_are_refused_before_the_slice() {
    let port = server(|_, _| say(OK));
    let mut arm = arm(port, r#","path":"/a$5""#);
    for (statements, words) in [
        (&["THINK $1"][..], "no request"),
        (&["GET /a GET /b"], "GET /a GET /b: a GET has no body; is a ';' missing?"),
        (&["GET /", "HEAD /a?b=$1\nGET /b"], "a HEAD has no body"),
    ] {
        let refused = arm.slice(&script(statements, number()), &so_many(1), &mut || ()).unwrap_err();
        assert!(refused.code == "statement" && refused.text.contains(words), "{refused}");
    }
    assert_eq!(run(&mut *arm, &["GET", "THINK $1"], number(), 2).rows, 2);
}

/// Result of a reader for bytes in these pieces: the body's hash, or the failure's code.
fn read_in<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> std::result::Result<u64, String> {
    let mut reader = reader::Reader::default();
    reader.start(false, false);
    for piece in pieces {
        match reader.take(piece) {
            Ok(true) => return Ok(reader.body.hash),
            Ok(false) => {}
            Err(failure) => return Err(failure.code),
        }
    }
    reader.end(true).map(|()| reader.body.hash).map_err(|failure| failure.code)
}

#[test]
fn wherever_a_response_is_cut_it_is_the_same() {
    let hash = xxh3_64_with_seed(b"hello", 200);
    for (response, expected) in [
        (OK.to_string(), Ok(hash)),
        (format!("HTTP/1.1 100 Continue\r\n\r\n{OK}"), Ok(hash)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nT: u\r\n\r\n".into(),
            Ok(hash),
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello".into(), Ok(hash)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into(), Ok(xxh3_64_with_seed(b"", 200))),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhexx".into(), Err("malformed".to_string())),
        ("HTTP/1.1 2x0 OK\r\n\r\n".into(), Err("malformed".to_string())),
    ] {
        let bytes = response.as_bytes();
        for cut in 0..bytes.len() {
            let (one, two) = bytes.split_at(cut);
            assert_eq!(
                read_in([one, two].into_iter().filter(|part| !part.is_empty())),
                expected,
                "{response:?} at {cut}"
            );
        }
        assert_eq!(read_in(bytes.chunks(1)), expected, "{response:?} byte by byte");
    }
}
