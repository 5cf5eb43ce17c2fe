//! Lines of headers that the user adds to requests, and which of them are refused.

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
}
