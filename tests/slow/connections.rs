//! Clients that send half a request, take nothing, or come in crowds: others are answered nevertheless.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use annals_testkit::Bench;
use annals_testkit::server::Server;

/// Longer than any limit of the server: a test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(120);

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A request on a connection that stays open; whether it was answered with 200.
fn ask(stream: &mut TcpStream, server: &Server) -> bool {
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    let mut answer = [0; 4096];
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read(&mut answer).is_ok_and(|read| answer[..read].starts_with(b"HTTP/1.1 200"))
}

#[test]
fn half_a_request_is_given_up() {
    let bench = Bench::new();
    bench.sync();
    let server = Server::without_refresh(&bench);
    for start in ["", "GET / HTTP/1.1\r\nHost: 127.0", "GET /healthz HTTP/1.1\r\n"] {
        let mut stream = connect(&server);
        stream.write_all(start.as_bytes()).unwrap();
        let mut rest = Vec::new();
        // The server closes the connection; without a limit this read runs into its own.
        let read = stream.read_to_end(&mut rest);
        assert!(!read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "{start:?}");
    }
    assert!(ask(&mut connect(&server), &server));
}

/// With few files to open, a crowd fills the room; whoever is connected is answered, and others once the crowd is gone.
#[test]
fn a_crowd_does_not_shut_out_those_who_are_there() {
    let bench = Bench::new();
    bench.sync();
    let mut plain = bench.command(&["serve", "--listen", "127.0.0.1:0", "--json", "--no-sync"]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 100; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    command.env_clear();
    for (name, value) in plain.get_envs() {
        value.map(|value| command.env(name, value));
    }
    plain.env_clear();
    let server = Server::of(command);
    let mut first = connect(&server);
    assert!(ask(&mut first, &server));
    let crowd: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = connect(&server);
            // Refused connections may be closed before this.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\n");
            stream
        })
        .collect();
    for _ in 0..5 {
        assert!(ask(&mut first, &server), "whoever was there is answered");
    }
    drop(crowd);
    let answered = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        ask(&mut connect(&server), &server)
    });
    assert!(answered, "there is room again");
}
