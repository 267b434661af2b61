//! An agent: speaks the Model Context Protocol with `annals mcp`, or with a server over HTTP.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Bench;
use crate::server::Server;

/// A client of `annals mcp`, which ends with the test.
pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: i64,
}

/// What a client says first.
pub fn hello() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

impl Agent {
    /// Started in a folder, as clients do.
    pub fn start(bench: &Bench, folder: &Path) -> Agent {
        let mut command = bench.command(&["mcp"]);
        command.current_dir(folder);
        Agent::of(command)
    }

    pub fn of(mut command: Command) -> Agent {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Agent { child, input, output, requests: 0 };
        let welcome = agent.ask("initialize", hello());
        assert_eq!(welcome["serverInfo"]["name"], "annals", "{welcome}");
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// The result of a request, or its error.
    pub fn try_ask(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "no answer to {method}");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return outcome(answer);
            }
        }
    }

    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.try_ask(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The text of a tool's answer, and whether it is an error.
    pub fn try_call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        text_of(&self.ask("tools/call", json!({"name": tool, "arguments": arguments})))
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> String {
        let (text, failed) = self.try_call(tool, arguments.clone());
        assert!(!failed, "{tool} {arguments}: {text}");
        text
    }

    /// Closes the connection; the program must end.
    pub fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A request to `/mcp`: its status, and its result or error.
pub fn ask_server(server: &Server, token: &str, method: &str, parameters: Value) -> Result<Value, Value> {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-06-18"),
    ];
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
    let reply = server.post("/mcp", &headers, &request);
    assert_eq!(reply.status, 200, "{}", reply.text());
    outcome(reply.json())
}

/// The text of a tool's answer over HTTP.
pub fn call_server(server: &Server, token: &str, tool: &str, arguments: Value) -> (String, bool) {
    let answer = ask_server(server, token, "tools/call", json!({"name": tool, "arguments": arguments}));
    text_of(&answer.unwrap_or_else(|error| panic!("{tool}: {error}")))
}

fn outcome(answer: Value) -> Result<Value, Value> {
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(answer["error"].clone()),
    }
}

fn text_of(result: &Value) -> (String, bool) {
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"] == true)
}
