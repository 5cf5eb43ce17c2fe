//! Headers that the user adds to requests: checks them, and joins them with those that every request has.

use super::exchange::Place;
use super::statement::Text;

/// Headers that the agent sets, or that change how a message is framed, each with the reason why the user's is refused.
const OURS: [(&str, &str); 12] = [
    ("host", "the agent takes it from the address"),
    ("content-length", "the agent counts the body"),
    ("transfer-encoding", "the agent states the body's length"),
    ("connection", "the agent decides when a connection ends"),
    ("keep-alive", "the agent decides when a connection ends"),
    ("proxy-connection", "the agent decides when a connection ends"),
    ("upgrade", "the agent speaks the HTTP version that was requested"),
    ("http2-settings", "the agent speaks the HTTP version that was requested"),
    ("alt-used", "the agent speaks the HTTP version that was requested"),
    ("te", "the agent takes no trailers"),
    ("trailer", "the agent sends no trailers"),
    ("expect", "the agent sends the body at once"),
];

/// A header of a request.
#[derive(Debug)]
pub struct Header {
    pub name: String,
    pub value: Text,
}

/// Parses lines of `Name: value`. Err: what is wrong with them; it repeats names, but no value, which may be secret.
pub fn parse(lines: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut found = Vec::new();
    for line in lines.split('\n').filter(|line| !line.is_empty()) {
        let Some((name, value)) = line.split_once(':') else {
            return Err("a header has no colon: write Name: value".to_string());
        };
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("a header's name has characters that no name may have".to_string());
        }
        let value = value.trim_matches([' ', '\t']);
        if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(format!("header {name}: its value has control characters"));
        }
        if let Some((_, why)) = OURS.iter().find(|(ours, _)| ours.eq_ignore_ascii_case(name)) {
            return Err(format!("header {name}: can't be set, because {why}"));
        }
        found.push((name, value));
    }
    Ok(found)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// All headers of a request but those of its connection and its body's length. A statement's own replace the connection's of the
/// same name, and both replace those that the agent sends by itself.
pub fn joined(own: Vec<Header>, site: &str, content_type: Option<&str>) -> Vec<Header> {
    let fixed = |name: &str, value: &str| Header { name: name.to_string(), value: Text::literally(value) };
    let has = |headers: &[Header], name: &str| headers.iter().any(|each| each.name.eq_ignore_ascii_case(name));
    let given = parse(site).unwrap_or_default();
    let mut all: Vec<Header> =
        given.iter().filter(|(name, _)| !has(&own, name)).map(|(name, value)| fixed(name, value)).collect();
    // A body's type fits the body of one request only.
    all.retain(|each| content_type.is_some() || !each.name.eq_ignore_ascii_case("content-type"));
    all.extend(own);
    let mut usual = vec![fixed("User-Agent", "ciphercost"), fixed("Accept", "*/*")];
    usual.extend(content_type.map(|content_type| fixed("Content-Type", content_type)));
    usual.retain(|each| !has(&all, &each.name));
    usual.extend(all);
    usual
}

/// A text of HTTP/1.1: `name: value` and the end of the line.
pub fn put_line(name: &str, value: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(name.as_bytes());
    into.extend_from_slice(b": ");
    into.extend_from_slice(value);
    into.extend_from_slice(b"\r\n");
}

/// The line of the server's name.
pub fn put_host(place: &Place, into: &mut Vec<u8>) {
    put_line("Host", place.authority.as_bytes(), into);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        assert_eq!(parse("Cookie: a=b; c=d\nX-Empty:\n").unwrap(), [("Cookie", "a=b; c=d"), ("X-Empty", "")]);
        for (wrong, words) in [
            ("Cookie", "no colon"),
            (": x", "no name may have"),
            ("A B: x", "no name may have"),
            ("A: x\r", "control characters"),
            ("A: x\0y", "control characters"),
            ("hOST: x", "takes it from the address"),
            ("Content-Length: 5", "counts the body"),
        ] {
            let said = parse(wrong).unwrap_err();
            assert!(said.contains(words) && !said.contains('x'), "{wrong:?}: {said}");
        }
    }

    #[test]
    fn the_nearest_header_counts() {
        let own = vec![Header { name: "accept".into(), value: Text::literally("text/html") }];
        let all = joined(own, "Cookie: a\nACCEPT: b\nContent-Type: c", None);
        let names: Vec<&str> = all.iter().map(|each| each.name.as_str()).collect();
        assert_eq!(names, ["User-Agent", "Cookie", "accept"]);
        let all = joined(Vec::new(), "Content-Type: c", Some("application/json"));
        assert_eq!(all.last().unwrap().value.fixed(), Some(&b"c"[..]));
    }
}
