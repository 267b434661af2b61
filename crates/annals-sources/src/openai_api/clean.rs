//! Removes credentials from a trace before it is stored, and leaves all other bytes unchanged.

use std::borrow::Cow;
use std::ops::Range;

use super::stream;
use crate::json::{Json, Object, unescape};
use annals_core::from_base64;
use annals_redact::Redactor;

/// No log has headers deeper than this.
const DEEPEST: usize = 48;

/// Fields with the conversation itself, from which nothing is removed.
const CONTENT: &[&str] = &[
    "messages",
    "input",
    "instructions",
    "output",
    "choices",
    "functions",
    "response_format",
    "arguments",
    "prompt",
];

/// Removes headers, cookies, parameters and fields with credentials. Base64 bodies of HAR files are decoded to text so
/// that they can be cleaned as well.
pub fn clean(element: &[u8]) -> Cow<'_, [u8]> {
    let Some(json) = Json::parse(element) else { return Cow::Borrowed(element) };
    let mut cleaner = Cleaner { whole: element, edits: Vec::new() };
    cleaner.value(json, DEEPEST);
    cleaner.finish()
}

struct Cleaner<'a> {
    whole: &'a [u8],
    /// Ordered by offset, without overlaps.
    edits: Vec<(Range<usize>, Vec<u8>)>,
}

impl<'a> Cleaner<'a> {
    fn finish(self) -> Cow<'a, [u8]> {
        if self.edits.is_empty() {
            return Cow::Borrowed(self.whole);
        }
        let (mut text, mut at) = (Vec::with_capacity(self.whole.len()), 0);
        for (range, instead) in &self.edits {
            text.extend_from_slice(self.whole.get(at..range.start).unwrap_or_default());
            text.extend_from_slice(instead);
            at = range.end;
        }
        text.extend_from_slice(self.whole.get(at..).unwrap_or_default());
        Cow::Owned(text)
    }

    fn value(&mut self, value: Json<'a>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if value.is_object() {
            let object = value.object();
            let base64 =
                object.get_text("encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("base64"));
            let decoded = object.get("text").filter(|_| base64).and_then(|text| decoded(text));
            let of_server = object.get_text("type").is_some_and(|kind| kind == "mcp");
            let removes = |name: &str, value: Json<'_>| {
                let opens = is_credential(name) && !matches!(value.bytes(), b"null" | b"\"\"");
                // Headers for a tool's server are credentials.
                opens || of_server && name == "headers" || name == "encoding" && decoded.is_some()
            };
            let fields: Vec<(String, Json<'a>)> = fields(&object).collect();
            let members: Vec<Member> = fields
                .iter()
                .map(|(name, value)| {
                    let end = self.place(value.bytes()).end;
                    let start = self.place(name_bytes(&object, *value)).start.saturating_sub(1);
                    Member { start, end, removed: removes(name, *value) }
                })
                .collect();
            let open = self.place(value.bytes()).start + 1;
            self.members(open, &members, |cleaner, number| {
                let (name, value) = &fields[number];
                match &decoded {
                    Some(text) if name == "text" => {
                        let text = clean_text(text).unwrap_or_else(|| text.clone());
                        cleaner.edits.push((cleaner.place(value.bytes()), in_quotes(&text)));
                    }
                    _ => cleaner.field(name, *value, depth),
                }
            });
        } else if value.is_array() {
            let items: Vec<Json<'a>> = value.items().collect();
            self.items(value, &items, &|_| false, depth);
        } else if value.is_string() {
            self.text(value);
        }
    }

    fn field(&mut self, name: &str, value: Json<'a>, depth: usize) {
        let lower = name.to_ascii_lowercase();
        let items = || value.items().collect::<Vec<_>>();
        if CONTENT.contains(&name) || name == "content" && !value.is_object() {
        } else if lower.ends_with("headers") && value.is_array() {
            self.items(value, &items(), &|item| pair(item, is_credential_header), depth);
        } else if matches!(name, "queryString" | "params") {
            self.items(value, &items(), &|item| pair(item, |name, _| is_credential_parameter(name)), depth);
        } else if name == "tools" {
            // Schemas of functions may have fields with any name.
            let servers =
                items().into_iter().filter(|tool| tool.get_text("type").is_some_and(|kind| kind == "mcp"));
            servers.for_each(|tool| self.value(tool, depth));
        } else if lower.ends_with("headers") && value.is_object() {
            self.map(value, depth);
        } else {
            self.value(value, depth);
        }
    }

    /// Headers as an object.
    fn map(&mut self, value: Json<'a>, depth: usize) {
        let object = value.object();
        let fields: Vec<(String, Json<'a>)> = fields(&object).collect();
        let members: Vec<Member> = fields
            .iter()
            .map(|(name, value)| {
                let end = self.place(value.bytes()).end;
                let start = self.place(name_bytes(&object, *value)).start.saturating_sub(1);
                let text = value.text().unwrap_or_default();
                Member { start, end, removed: is_credential_header(name, &text) }
            })
            .collect();
        let open = self.place(value.bytes()).start + 1;
        self.members(open, &members, |cleaner, number| cleaner.value(fields[number].1, depth));
    }

    fn items(
        &mut self,
        array: Json<'a>,
        items: &[Json<'a>],
        removes: &dyn Fn(Json<'a>) -> bool,
        depth: usize,
    ) {
        let members: Vec<Member> = items
            .iter()
            .map(|item| {
                let place = self.place(item.bytes());
                Member { start: place.start, end: place.end, removed: removes(*item) }
            })
            .collect();
        let open = self.place(array.bytes()).start + 1;
        self.members(open, &members, |cleaner, number| cleaner.value(items[number], depth));
    }

    /// Removes members of an object or array with one comma each, and visits the others.
    fn members(&mut self, open: usize, members: &[Member], mut visit: impl FnMut(&mut Cleaner<'a>, usize)) {
        let kept = members.iter().rposition(|member| !member.removed);
        for (number, member) in members.iter().enumerate() {
            match (member.removed, members.get(number + 1)) {
                (false, _) => visit(self, number),
                (true, Some(next)) if kept.is_some_and(|kept| number < kept) => {
                    self.edits.push((member.start..next.start, Vec::new()));
                }
                (true, _) => {}
            }
        }
        let from = kept.map_or(open, |kept| members[kept].end);
        let last = members.last().filter(|last| last.removed).map(|last| last.end);
        if let Some(end) = last {
            self.edits.push((from..end, Vec::new()));
        }
    }

    /// Cleans a string, which may contain JSON, a stream or an address.
    fn text(&mut self, value: Json<'a>) {
        let Some(inner) = value.inner() else { return };
        let cleaned = match inner.trim_ascii_start().first() {
            Some(b'{' | b'[' | b'd' | b'e' | b':' | b'i' | b'r') => clean_text(unescape(inner).as_bytes()),
            _ if is_key(inner) => Some(b"[removed]".to_vec()),
            Some(b'h') if inner.starts_with(b"http") => {
                clean_address(&unescape(inner)).map(String::into_bytes)
            }
            _ => None,
        };
        if let Some(text) = cleaned {
            self.edits.push((self.place(value.bytes()), in_quotes(&text)));
        }
    }

    fn place(&self, part: &[u8]) -> Range<usize> {
        let start = (part.as_ptr() as usize).saturating_sub(self.whole.as_ptr() as usize);
        start..start + part.len()
    }
}

struct Member {
    start: usize,
    end: usize,
    removed: bool,
}

fn fields<'a>(object: &Object<'a>) -> impl Iterator<Item = (String, Json<'a>)> {
    object.fields().iter().map(|(name, value)| (unescape(name), *value))
}

/// The bytes of the name of this value.
fn name_bytes<'a>(object: &Object<'a>, value: Json<'a>) -> &'a [u8] {
    let same = |other: &Json<'a>| other.bytes().as_ptr() == value.bytes().as_ptr();
    object.fields().iter().find(|(_, other)| same(other)).map_or(&[], |(name, _)| *name)
}

/// Cleans JSON or a stream of it; `None` if nothing had to be removed.
fn clean_text(text: &[u8]) -> Option<Vec<u8>> {
    if Json::parse(text).is_some() {
        return match clean(text) {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        };
    }
    if !stream::is_stream(text) {
        return None;
    }
    let mut changed = false;
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let data = line.strip_prefix(b"data:").map(clean);
        match data {
            Some(Cow::Owned(data)) => {
                out.extend_from_slice(b"data:");
                out.extend_from_slice(&data);
                changed = true;
            }
            _ => out.extend_from_slice(line),
        }
    }
    changed.then_some(out)
}

/// Decodes a base64 body that is text.
fn decoded(value: Json<'_>) -> Option<Vec<u8>> {
    let bytes = from_base64(value.text()?.as_bytes())?;
    std::str::from_utf8(&bytes).is_ok().then_some(bytes)
}

fn in_quotes(text: &[u8]) -> Vec<u8> {
    serde_json::to_vec(&String::from_utf8_lossy(text)).unwrap_or_else(|_| b"\"\"".to_vec())
}

/// Removes a password before the host and keys in the query.
fn clean_address(address: &str) -> Option<String> {
    let (address_start, query) =
        address.split_once('?').map_or((address, None), |(start, query)| (start, Some(query)));
    let (scheme, rest) = address_start.split_once("://")?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let plain_host = host.rsplit('@').next().unwrap_or(host);
    let kept = query.map(|query| {
        let parts =
            query.split('&').filter(|part| !is_credential_parameter(part.split('=').next().unwrap_or(part)));
        parts.collect::<Vec<_>>().join("&")
    });
    let query = kept.filter(|query| !query.is_empty()).map(|query| format!("?{query}")).unwrap_or_default();
    let cleaned = format!("{scheme}://{plain_host}{path}{query}");
    (cleaned.len() < address.len()).then_some(cleaned)
}

/// An entry of a list of names and values.
fn pair(item: Json<'_>, removes: impl Fn(&str, &str) -> bool) -> bool {
    let (name, value) = (item.get_text("name"), item.get_text("value"));
    removes(&name.unwrap_or_default(), &value.unwrap_or_default())
}

/// Names of fields and parameters, in any spelling.
fn is_credential(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let ends = [
        "authorization",
        "apikey",
        "apikeyhash",
        "apikeyauth",
        "cookie",
        "cookies",
        "password",
        "secret",
        "accesstoken",
        "refreshtoken",
        "idtoken",
        "authtoken",
        "bearertoken",
        "adtoken",
        "sessiontoken",
        "secretaccesskey",
        "accesskeyid",
        "privatekey",
        "credentials",
        "subscriptionkey",
    ];
    ends.iter().any(|end| name.ends_with(end))
}

fn is_credential_parameter(name: &str) -> bool {
    is_credential(name) || matches!(name, "sig" | "signature" | "key" | "token" | "code")
}

fn is_credential_header(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_distinctive =
        ["auth", "key", "token", "secret", "cookie", "session", "credential", "password", "signature", "jwt"];
    let counts = name.contains("ratelimit");
    !counts && is_distinctive.iter().any(|word| name.contains(word)) || secret(value)
}

/// A value that consists of a key, whatever its name.
fn is_key(value: &[u8]) -> bool {
    let starts = |word: &[u8]| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let one_word = !value.iter().skip(7).any(u8::is_ascii_whitespace);
    one_word && value.len() > 20 && (starts(b"bearer ") || starts(b"basic ") || value.starts_with(b"sk-"))
}

fn secret(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut found =
        ["bearer ", "basic "].iter().any(|start| lower.starts_with(start)) || lower.contains("authorization");
    Redactor::new([0; 32]).each(value, &mut |_| found = true);
    found
}

#[cfg(test)]
mod tests {
    use super::{clean, clean_address};

    fn cleaned(text: &str) -> String {
        String::from_utf8(clean(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn headers_go_and_all_else_stays() {
        let har = r#"{"request": {"url":"https://x.openai.azure.com/a?api-version=1&api-key=zzz", "headers":[
            {"name":"Authorization","value":"Bearer zzz"}, {"name":"Accept","value":"*/*"},
            {"name":"api-key","value":"zzz"}], "cookies":[{"name":"a","value":"zzz"}],
            "queryString":[{"name":"api-key","value":"zzz"}]},
            "response":{"headers":[{"name":"x-ratelimit-limit-tokens","value":"5"},{"name":"set-cookie","value":"zzz"}]}}"#;
        let expected = r#"{"request": {"url":"https://x.openai.azure.com/a?api-version=1", "headers":[
            {"name":"Accept","value":"*/*"}], "queryString":[]},
            "response":{"headers":[{"name":"x-ratelimit-limit-tokens","value":"5"}]}}"#;
        assert_eq!(cleaned(har), expected);
    }

    #[test]
    fn bodies_are_cleaned() {
        let text = r#"{"postData":{"text":"{\"model\":\"m\",\"tools\":[{\"type\":\"mcp\",\"headers\":{\"Authorization\":\"Bearer zzz\"},\"authorization\":\"zzz\"}]}"}}"#;
        assert_eq!(
            cleaned(text),
            r#"{"postData":{"text":"{\"model\":\"m\",\"tools\":[{\"type\":\"mcp\"}]}"}}"#
        );
        let log = r#"{"api_key":"zzz","metadata":"{\"user_api_key\": \"zzz\", \"a\": 1}","proxy_server_request":{"headers":{"x-api-key":"zzz","host":"h"}}}"#;
        assert_eq!(
            cleaned(log),
            r#"{"metadata":"{\"a\": 1}","proxy_server_request":{"headers":{"host":"h"}}}"#
        );
        let odd = r#"{"litellm_params":{"auth":"Bearer sk-zzzzzzzzzzzzzzzzz","note":"sk-"},"llm_provider-x-ratelimit-limit-tokens":"5"}"#;
        let expected = r#"{"litellm_params":{"auth":"[removed]","note":"sk-"},"llm_provider-x-ratelimit-limit-tokens":"5"}"#;
        assert_eq!(cleaned(odd), expected);
        let base64 = r#"{"content":{"mimeType":"x","text":"eyJhcGlfa2V5IjoienoiLCJhIjoi4pyTIn0=","encoding":"base64"}}"#;
        assert_eq!(cleaned(base64), "{\"content\":{\"mimeType\":\"x\",\"text\":\"{\\\"a\\\":\\\"✓\\\"}\"}}");
        let stream = r#"{"content":{"text":"data: {\"a\":1,\"api_key\":\"zzz\"}\n\ndata: [DONE]\n"}}"#;
        assert_eq!(cleaned(stream), r#"{"content":{"text":"data: {\"a\":1}\n\ndata: [DONE]\n"}}"#);
    }

    #[test]
    fn the_conversation_is_not_touched() {
        for text in [
            r#"{"messages":[{"role":"user","content":"my api_key","api_key":"x"}],"usage":{"total_tokens":3}}"#,
            r#"{"tools":[{"type":"function","function":{"parameters":{"properties":{"api_key":{"type":"string"}}}}}]}"#,
            r#"{"choices":[{"message":{"content":"{\"authorization\":\"x\"}"}}], "api_key": null}"#,
            "not JSON",
            "",
        ] {
            assert_eq!(cleaned(text), text);
        }
    }

    #[test]
    fn addresses_lose_their_keys() {
        assert_eq!(clean_address("https://a:b@h/p?x=1&sig=2").as_deref(), Some("https://h/p?x=1"));
        assert_eq!(clean_address("https://h/p?x=1"), None);
    }
}
