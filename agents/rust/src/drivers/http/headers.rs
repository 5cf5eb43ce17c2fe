//! Headers that the user adds to requests, joined with those that every request has.

use super::text::Text;
use crate::message::header_lines::parse;

/// A header of a request.
#[derive(Debug)]
pub struct Header {
    pub name: String,
    pub value: Text,
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

#[cfg(test)]
mod tests {
    use super::*;

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
