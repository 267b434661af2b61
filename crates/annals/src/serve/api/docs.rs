//! The reference page of the API, generated from its OpenAPI document; it loads no other resources.

use std::fmt::Write as _;
use std::sync::OnceLock;

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::openapi::document_of_all;

const STYLE: &str = include_str!("docs.css");

pub async fn page() -> Response {
    static PAGE: OnceLock<String> = OnceLock::new();
    let page = PAGE.get_or_init(|| {
        let document = serde_json::to_value(document_of_all()).unwrap_or_default();
        let mut page = String::new();
        // Writing into a string does not fail.
        let _ = write_page(&mut page, &document);
        page
    });
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    ([(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, policy)], page.as_str()).into_response()
}

fn write_page(page: &mut String, document: &Value) -> std::fmt::Result {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let info = &document["info"];
    write!(
        page,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>annals: HTTP API</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head>\
         <body><header><h1>annals <small>HTTP API {}</small></h1><p>{}</p>\
         <p>Programs send <code>Authorization: Bearer TOKEN</code>; browsers have a cookie from the link that \
         <code>annals serve</code> prints. Lists have <code>limit</code> and <code>cursor</code>; times are RFC \
         3339 in UTC; errors are <code>application/problem+json</code>. The document for programs is at \
         <a href=\"/openapi.json\">/openapi.json</a>.</p></header><main>",
        text(&info["version"]),
        text(&info["description"])
    )?;
    let nothing = Map::new();
    let paths = document["paths"].as_object().unwrap_or(&nothing);
    // Shared routes first, then the additional routes of each source.
    let mut tags = ["sources", "sessions", "search", "lineage", "usage", "library", "server"]
        .map(str::to_owned)
        .to_vec();
    for tag in paths.values().filter_map(|item| item["get"]["tags"][0].as_str()) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    for tag in &tags {
        write!(page, "<h2>{}</h2>", escape(tag))?;
        for (path, item) in paths.iter().filter(|(_, item)| item["get"]["tags"][0] == **tag) {
            write_operation(page, document, path, &item["get"])?;
        }
    }
    write!(page, "</main></body></html>")
}

fn write_operation(page: &mut String, document: &Value, path: &str, operation: &Value) -> std::fmt::Result {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    write!(
        page,
        "<details><summary><b>GET</b> <code>{}</code> <span>{}</span></summary>",
        escape(path),
        text(&operation["summary"])
    )?;
    write_parameters(page, operation)?;
    let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    write!(page, "<h3>Response</h3><pre>")?;
    write_schema(page, document, schema, 0)?;
    write!(page, "</pre></details>")
}

fn write_parameters(page: &mut String, operation: &Value) -> std::fmt::Result {
    let Some(parameters) = operation["parameters"].as_array().filter(|parameters| !parameters.is_empty())
    else {
        return Ok(());
    };
    write!(page, "<h3>Parameters</h3><table>")?;
    for parameter in parameters {
        let text = |name: &str| escape(parameter[name].as_str().unwrap_or_default());
        let place = if parameter["in"] == "path" { "(path)" } else { "" };
        write!(
            page,
            "<tr><td><code>{}</code></td><td>{} {place}</td></tr>",
            text("name"),
            text("description")
        )?;
    }
    write!(page, "</table>")
}

/// The schema of a response in a compact notation; deep enough for every response.
fn write_schema(page: &mut String, document: &Value, schema: &Value, depth: usize) -> std::fmt::Result {
    let schema = resolve(document, schema);
    let space = "  ".repeat(depth + 1);
    if depth > 6 {
        return write!(page, "…");
    }
    if let Some(options) = schema["oneOf"].as_array() {
        let mut options = options.iter().filter(|option| option["type"] != "null").peekable();
        while let Some(option) = options.next() {
            write_schema(page, document, option, depth)?;
            if options.peek().is_some() {
                write!(page, " or ")?;
            }
        }
        return Ok(());
    }
    let mut fields = Vec::new();
    gather_fields(document, schema, &mut fields);
    if !fields.is_empty() {
        writeln!(page, "{{")?;
        for (name, field) in fields {
            write!(page, "{space}{}: ", escape(&name))?;
            write_schema(page, document, field, depth + 1)?;
            writeln!(page)?;
        }
        return write!(page, "{}}}", "  ".repeat(depth));
    }
    if schema["type"] == "array" || schema["items"].is_object() {
        write!(page, "[")?;
        write_schema(page, document, &schema["items"], depth)?;
        return write!(page, "]");
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::String(kind) => kind.clone(),
        _ => "any".into(),
    };
    match schema["enum"][0].as_str() {
        Some(only) => write!(page, "\"{}\"", escape(only)),
        None => write!(page, "{}", escape(&kinds)),
    }
}

fn gather_fields<'d>(document: &'d Value, schema: &'d Value, fields: &mut Vec<(String, &'d Value)>) {
    let schema = resolve(document, schema);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        gather_fields(document, part, fields);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        fields.push((name.clone(), field));
    }
}

fn resolve<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/components/schemas/"));
    name.map_or(schema, |name| &document["components"]["schemas"][name])
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
