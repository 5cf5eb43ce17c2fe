//! Parses a statement's text into a request with placeholders for an operation's values.

use super::headers::{self, Header};
use super::text::Text;
use crate::failure::{Failure, Result};
use crate::message::header_lines;
use crate::program::{Operation, Statement};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    const ALL: [Method; 6] = [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch, Method::Delete];

    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// A parsed statement: `[CLEAR ]METHOD[ PATH[ BODY]]`.
#[derive(Debug)]
pub struct Asked {
    /// It goes over the connection without TLS.
    pub clear: bool,
    pub method: Method,
    pub path: Text,
    /// All but those of the connection and the body's length.
    pub headers: Vec<Header>,
    pub body: Option<Text>,
}

/// Maximum length of a body in an error text.
const SHOWN: usize = 100;

impl Asked {
    /// `site`: headers of every request, one a line.
    pub fn read(statement: &Statement, default_path: &str, site: &str) -> Result<Asked> {
        let text = statement.sql.trim_start();
        let (clear, text) = match text.strip_prefix("CLEAR ") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let (word, rest) = text.split_once([' ', '\n', '\t']).unwrap_or((text, ""));
        let method = Method::ALL.into_iter().find(|method| method.name() == word.trim_end()).ok_or_else(|| {
            let known = Method::ALL.map(Method::name).join(", ");
            Failure::statement(format!("{word:?} is no method: a request begins with one of {known}, or with CLEAR"))
        })?;
        let rest = rest.trim_start();
        let (path, body) = rest.split_once([' ', '\n', '\t']).unwrap_or((rest, ""));
        let own = !path.is_empty();
        let path = if own { path } else { default_path };
        if !(path.starts_with('/') || own && path.starts_with('$')) {
            return Err(Failure::statement(format!("path {path:?}: must begin with /")));
        }
        if path.contains('#') || path.contains(char::is_control) {
            return Err(Failure::statement(format!("path {path:?}: must not contain # or control characters")));
        }
        if matches!(method, Method::Get | Method::Head) && !body.trim().is_empty() {
            let (name, shown) = (method.name(), body.trim().chars().take(SHOWN).collect::<String>());
            return Err(Failure::statement(format!("{name} {path} {shown}: a {name} has no body; is a ';' missing?")));
        }
        if statement.body.is_some() && (matches!(method, Method::Get | Method::Head) || !body.is_empty()) {
            return Err(Failure::statement(format!("{} {path}: has no body, or has one already", method.name())));
        }
        let body = if matches!(method, Method::Get | Method::Head) { "" } else { body };
        let text = statement.body.as_deref().unwrap_or(body);
        let content_type = match text.as_bytes().first() {
            None => None,
            Some(b'{' | b'[') => Some("application/json"),
            Some(_) => Some("application/x-www-form-urlencoded"),
        };
        let body = match (&statement.body, content_type) {
            (_, None) => None,
            (Some(given), _) => Some(Text::literally(given)),
            (None, _) => Some(Text::read(body, &statement.parameters, false)?),
        };
        let mut own_headers = Vec::new();
        for (name, value) in header_lines::parse(&statement.headers).map_err(Failure::statement)? {
            let value = Text::read(value, &statement.parameters, false)?;
            own_headers.push(Header { name: name.to_string(), value });
        }
        let path = if own { Text::read(path, &statement.parameters, true)? } else { Text::of_path(path) };
        Ok(Asked { clear, method, path, headers: headers::joined(own_headers, site, content_type), body })
    }

    /// Whether the request is always the same.
    pub fn is_fixed(&self) -> bool {
        let mut texts =
            std::iter::once(&self.path).chain(self.headers.iter().map(|each| &each.value)).chain(&self.body);
        texts.all(|text| text.fixed().is_some())
    }

    /// The request for error messages.
    pub fn label(&self, operation: &Operation) -> String {
        let mut path = Vec::new();
        self.path.put(operation, &mut path);
        format!("{} {}", self.method.name(), String::from_utf8_lossy(&path))
    }

    /// The body, if it is sent: methods that usually have one state its length either way.
    pub fn states_length(&self) -> bool {
        self.body.is_some() || matches!(self.method, Method::Post | Method::Put | Method::Patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Result<Asked> {
        Asked::read(&Statement { sql: sql.into(), parameters: vec![], ..Statement::default() }, "/home", "")
    }

    #[test]
    fn a_request_is_a_method_a_path_and_a_body() {
        let asked = read("CLEAR POST /form?a=$ b=c d\n").unwrap();
        assert!(asked.clear && asked.method == Method::Post);
        assert_eq!(asked.path.fixed(), Some(&b"/form?a=$"[..]));
        let body = asked.body.unwrap();
        assert_eq!(body.fixed(), Some(&b"b=c d\n"[..]));
        let content_type = |sql: &str| read(sql).unwrap().headers.pop().unwrap().value;
        assert_eq!(content_type("POST / b=c").fixed(), Some(&b"application/x-www-form-urlencoded"[..]));
        assert_eq!(content_type("PATCH / {\"a\": 1}").fixed(), Some(&b"application/json"[..]));
        assert_eq!(content_type("PUT / [1]").fixed(), Some(&b"application/json"[..]));
        assert_eq!(read(" HEAD").unwrap().path.fixed(), Some(&b"/home"[..]));
        assert_eq!(read("GET /ö").unwrap().path.fixed(), Some(&b"/%C3%B6"[..]));
        assert!(read("GET /a \n").unwrap().body.is_none());
        assert!(read("DELETE /a b=c").unwrap().body.is_some());
    }

    #[test]
    fn the_connections_own_path_has_no_values_in_it() {
        let statement = |sql: &str| Statement { sql: sql.into(), parameters: vec![0], ..Statement::default() };
        let path = |sql, default| Asked::read(&statement(sql), default, "").map(|asked| asked.path);
        assert_eq!(path("GET", "/a$1?b=$5").unwrap().fixed(), Some(&b"/a$1?b=$5"[..]));
        assert_eq!(path("GET /a$1", "/").unwrap().fixed(), None);
        assert_eq!(path("GET", "$1").unwrap_err().code, "statement");
    }

    #[test]
    fn text_that_is_not_a_request_is_refused() {
        for sql in [
            "",
            "SELECT 1",
            "get /",
            "THINK 5",
            "GET x",
            "GET /a#b",
            "GET /\x01",
            "GET /$1",
            "POST / $0",
            "CLEAR",
            "GET / a=b",
        ] {
            assert_eq!(read(sql).unwrap_err().code, "statement", "{sql:?}");
        }
    }
}
