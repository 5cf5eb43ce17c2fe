//! HTTP/2.

use super::clients::*;
use super::servers::*;
use crate::drivers::http::exchange::{Exchange, Place, Taken};
use crate::drivers::http::statement::Asked;
use crate::drivers::http::two::Two;
use crate::program::Statement;
use crate::xxh3::xxh3_64_with_seed;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// One frame: kind, flags, stream, payload.
fn read_frame(stream: &mut impl Read) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let mut payload = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
    stream.read_exact(&mut payload).ok()?;
    Some((head[3], head[4], u32::from_be_bytes(head[5..].try_into().unwrap()), payload))
}

/// An HTTP/2 server that begins with these settings, opens small windows for uploads, waits for an answer to its
/// pings, and replies to each stream by a function of its request's header block.
fn server_of_two(settings: &'static [u8], reply: impl Fn(u32, &[u8]) -> Reply + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reply = Arc::new(reply);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, reply) = (stream.unwrap(), reply.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let mut preface = [0; 24];
                stream.read_exact(&mut preface).unwrap();
                assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
                stream.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
                let (mut asked, mut acknowledged) = (Vec::new(), false);
                while let Some((kind, flags, id, payload)) = read_frame(&mut stream) {
                    match kind {
                        SETTINGS if flags == 1 => acknowledged = true,
                        HEADERS => asked = payload,
                        DATA if flags & 1 == 0 => {
                            let more = 1_000_000u32.to_be_bytes();
                            let _ = stream.write_all(
                                &[frame(WINDOW_UPDATE, 0, 0, &more), frame(WINDOW_UPDATE, 0, id, &more)].concat(),
                            );
                        }
                        _ => {}
                    }
                    if !matches!(kind, DATA | HEADERS) || flags & 1 == 0 {
                        continue;
                    }
                    assert!(acknowledged, "a request before the settings were acknowledged");
                    stream.write_all(&frame(PING, 0, 0, b"are you?")).unwrap();
                    loop {
                        match read_frame(&mut stream) {
                            Some((PING, 1, 0, payload)) => break assert_eq!(payload, b"are you?"),
                            Some(_) => {}
                            None => return,
                        }
                    }
                    match reply(id, &asked) {
                        Reply::Say(bytes) => drop(stream.write_all(&bytes)),
                        Reply::Last(bytes) => return drop(stream.write_all(&bytes)),
                        Reply::Silence | Reply::Slowly(..) | Reply::Twice(..) => thread::sleep(Duration::from_secs(8)),
                    }
                }
            });
        }
    });
    port
}

fn has(block: &[u8], path: &str) -> bool {
    block.windows(path.len()).any(|part| part == path.as_bytes())
}

/// `:status` 200 and a Content-Length of 5.
const HEAD_OF_FIVE: &[u8] = b"\x88\x0f\x0d\x015";

#[test]
fn http_2_runs_one_stream_at_a_time_and_answers_control_frames() {
    let port = server_of_two(b"", |id, asked| {
        let body = frame(DATA, 1, id, b"hello");
        let pieces = match asked {
            // Padded, with a priority, in two blocks, with interim and trailing fields.
            asked if has(asked, "/odd") => {
                let (one, two) = HEAD_OF_FIVE.split_at(2);
                let padded = [&b"\x03\0\0\0\0\x01"[..], one, b"\0\0\0"].concat();
                vec![
                    frame(HEADERS, 4, id, b"\x08\x03103"),
                    frame(HEADERS, 8 | 32, id, &padded),
                    frame(CONTINUATION, 4, id, two),
                    frame(DATA, 8, id, b"\x02he\0\0"),
                    frame(200, 0, id, b"whatever"),
                    frame(DATA, 0, id, b"llo"),
                    frame(HEADERS, 4 | 1, id, b"\0\x01a\x01b"),
                ]
            }
            asked if has(asked, "/none") => vec![frame(HEADERS, 4 | 1, id, b"\x89")],
            _ => vec![frame(HEADERS, 4, id, HEAD_OF_FIVE), body],
        };
        Reply::Say(pieces.concat())
    });
    let hash = xxh3_64_with_seed(b"hello", 200);
    for way in WAYS {
        for (path, hash) in [("/", hash), ("/odd", hash), ("/none", xxh3_64_with_seed(b"", 204))] {
            let tally = run(&mut *arm(port, &format!(r#","http":"2"{way}"#)), &[&format!("GET {path}")], number(), 6);
            assert_eq!((tally.rows, tally.errors), (6, 0), "{way} {path}: {}", tally.first_error);
            assert_eq!(tally.checksum, hash.wrapping_mul(6), "{way} {path}");
            assert_eq!(tally.traffic.connects, if way.contains("per_request") { 6 } else { 0 });
        }
    }
}

#[test]
fn frames_after_a_ping_are_read_from_the_tls_buffer() {
    let port = tls_server_in_flights(b"\x02h2", |mut stream| {
        stream.read_exact(&mut [0; 24]).unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, b"")).unwrap();
        while let Some((kind, _, id, _)) = read_frame(&mut stream) {
            if kind != HEADERS {
                continue;
            }
            stream.get_mut().hold();
            // Each frame is a record of TLS.
            stream.write_all(&frame(HEADERS, 4, id, HEAD_OF_FIVE)).unwrap();
            for letter in b"hell" {
                stream.write_all(&frame(PING, 0, 0, b"are you?")).unwrap();
                stream.write_all(&frame(DATA, 0, id, &[*letter])).unwrap();
            }
            stream.write_all(&frame(DATA, 1, id, b"o")).unwrap();
            stream.get_mut().release();
        }
    });
    for way in WAYS {
        let (rows, kinds, text) = outcome(port, &format!(r#","http":"2","tls":"require"{way}"#), "GET /");
        assert_eq!((rows, kinds.as_str()), (4, ""), "{way}: {text}");
    }
}

#[test]
fn http_2_sends_no_more_than_the_server_has_room_for() {
    // A window of ten bytes for a stream, until the server enlarges it.
    let port = server_of_two(b"\0\x04\0\0\0\x0a", |id, _| {
        Reply::Say([frame(HEADERS, 4, id, HEAD_OF_FIVE), frame(DATA, 1, id, b"hello")].concat())
    });
    let upload = format!("POST / {}", "x".repeat(3_000_000));
    for way in WAYS {
        let tally = run(&mut *arm(port, &format!(r#","http":"2"{way}"#)), &[&upload, "POST /$1 a=$1"], number(), 2);
        assert_eq!((tally.rows, tally.errors), (4, 0), "{way}: {}", tally.first_error);
    }
}

#[test]
fn a_malformed_http_2_response_fails_its_operation() {
    let port = server_of_two(b"", |id, asked| {
        let five = frame(HEADERS, 4, id, HEAD_OF_FIVE);
        let body = |text: &[u8]| frame(DATA, 1, id, text);
        match asked {
            asked if has(asked, "/short") => Reply::Say([five, body(b"hell")].concat()),
            asked if has(asked, "/long") => Reply::Say([five, body(b"hello!")].concat()),
            asked if has(asked, "/reset") => Reply::Say(frame(RST_STREAM, 0, id, &[0, 0, 0, 2])),
            asked if has(asked, "/cut") => Reply::Last([five, frame(DATA, 0, id, b"he")].concat()),
            asked if has(asked, "/leave") => Reply::Last(frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 1])),
            asked if has(asked, "/block") => Reply::Say(frame(HEADERS, 4 | 1, id, b"\xbe")),
            asked if has(asked, "/pushed") => Reply::Say(frame(5, 4, id, b"\0\0\0\x02\x82")),
            asked if has(asked, "/missing") => Reply::Say(frame(HEADERS, 4 | 1, id, b"\x8d")),
            asked if has(asked, "/nobody") => Reply::Say(frame(DATA, 1, id, b"hello")),
            asked if has(asked, "/huge") => Reply::Say(frame(DATA, 0, id, &[0; 16_385])),
            _ => Reply::Silence,
        }
    });
    for way in WAYS {
        for (path, kind, words) in [
            ("short", "closed-early", "Content-Length"),
            ("long", "malformed", "longer than its Content-Length"),
            ("reset", "closed-early", "GET /reset: the server reset the stream: INTERNAL_ERROR"),
            ("cut", "closed-early", "3 bytes before the body does"),
            ("leave", "closed-early", "the server closed the connection"),
            ("block", "malformed", "header block is malformed"),
            ("pushed", "malformed", "pushes"),
            ("missing", "status-404", "GET /missing: 404"),
            ("nobody", "malformed", "unexpected"),
            ("huge", "malformed", "longer than allowed"),
        ] {
            fails(port, &format!(r#","http":"2"{way}"#), path, kind, words);
        }
    }
    let mut arm = arm_with(IN_A_MOMENT, port, r#","http":"2","connections":4"#);
    assert_eq!(run(&mut *arm, &["GET /silence"], number(), 4).kinds.spell(), "timeout=4");
}

#[test]
fn after_goaway_http_2_requests_move_to_another_connection() {
    // Three streams per connection: GOAWAY comes with the third response, or the fourth stream is ignored.
    for announced in [true, false] {
        let port = server_of_two(b"", move |id, _| {
            let answer = [frame(HEADERS, 4, id, HEAD_OF_FIVE), frame(DATA, 1, id, b"hello")].concat();
            let leave = frame(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]);
            match id {
                5 if announced => Reply::Last([leave, answer].concat()),
                7 => Reply::Last(leave),
                _ => Reply::Say(answer),
            }
        });
        for way in &WAYS[..2] {
            let tally = run(&mut *arm(port, &format!(r#","http":"2"{way}"#)), &["GET /"], number(), 30);
            assert_eq!((tally.rows, tally.errors), (30, 0), "{}", tally.first_error);
            assert!((8..=10).contains(&tally.traffic.connects), "{} connections", tally.traffic.connects);
        }
    }
}

#[test]
fn wherever_frames_are_cut_the_answer_is_the_same() {
    let bytes = [
        frame(SETTINGS, 0, 0, &[0, 5, 0, 1, 0, 0]),
        frame(HEADERS, 4, 1, HEAD_OF_FIVE),
        frame(DATA, 0, 1, b"he"),
        frame(PING, 0, 0, b"12345678"),
        frame(DATA, 1, 1, b"llo"),
    ]
    .concat();
    let statement = Statement { sql: "GET /".into(), parameters: vec![], ..Statement::default() };
    let asked = || Asked::read(&statement, "/", "").unwrap();
    let place = Place { authority: "x".into(), scheme: "http" };
    for size in 1..bytes.len() {
        let (mut two, mut say, mut taken) = (Two::default(), Vec::new(), Taken::Part);
        two.start(&Two::compile(asked(), &place, false), false);
        for piece in bytes.chunks(size) {
            assert_eq!(taken, Taken::Part);
            taken = two.take(piece, &mut say).unwrap();
        }
        assert_eq!(taken, Taken::Answer);
        assert_eq!(two.response().body.hash, xxh3_64_with_seed(b"hello", 200));
        assert_eq!(say, [frame(SETTINGS, 1, 0, b""), frame(PING, 1, 0, b"12345678")].concat());
    }
}

#[test]
fn a_server_that_does_not_speak_http_2_is_refused() {
    let port = server(|_, _| say("HTTP/1.1 400 Bad Request\r\n\r\n"));
    let refused = connect_to(port, r#","http":"2""#).err().unwrap();
    assert_eq!((refused.code.as_str(), refused.text.as_str()), ("connect", "the server does not speak HTTP/2"));
    let port = tls_server(false, b"\x08http/1.1", |_, _| say(OK));
    let refused = connect_to(port, r#","http":"2","tls":"require""#).err().unwrap();
    assert_eq!(refused.code, "tls", "{refused}");
}
