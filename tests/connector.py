"""A small connector, and what it may do wrong: the first argument says which."""

import json
import os
import subprocess
import sys
import time

EMITTED_AT = "2026-11-15T10:00:00Z"
emitted = 0


def say(message, /, **fields):
    print(json.dumps({"type": message, **fields}), flush=True)


def record(key, text, **more):
    global emitted
    emitted += 1
    say("RECORD", stream="notes", key=key, emitted_at=EMITTED_AT, data={"text": text}, **more)


def done(status="succeeded", **more):
    say("DONE", status=status, records_emitted=emitted, **more)


def good():
    """Serves gaps first, then goes on from its state: two notes a run, and the one between is not to be had."""
    seen = start["state"].get("notes", {}).get("seen", 0)
    for gap in start["gaps"]:
        record(gap["key"], "page %d" % gap["locator"]["page"])
        say("DETAIL_GAP_RECOVERED", stream="notes", key=gap["key"])
    gaps = 0
    if start["mode"] != "gaps_only":
        record("n%d" % (seen + 1), "first")
        say("DETAIL_GAP", stream="notes", key="n%d" % (seen + 2), http_status=429, locator={"page": seen + 2})
        gaps = 1
        record("n%d" % (seen + 3), "third")
        record("same", "always")
        say("SKIP_RESULT", stream="notes", reason="draft", count=2)
        say("PROGRESS", message="all pages", count=3, total=3)
        say("ESTIMATE", seconds_left=61)
        say("DETAIL_COVERAGE", stream="notes", considered=emitted + gaps + 2, records=emitted, gaps=gaps, skipped=2)
        say("STATE", stream="notes", cursor={"seen": seen + 3}, records=emitted)
    done()


def part():
    """What every scenario below has committed before it goes wrong, and what it has not."""
    record("kept", "before the state")
    say("STATE", stream="notes", cursor={"seen": 1})
    record("lost", "after the state")
    say("DETAIL_GAP", stream="notes", key="lost gap", reason="timeout")


def wrong_done():
    part()
    say("DONE", status="succeeded", records_emitted=emitted + 1)


def wrong_state():
    part()
    say("STATE", stream="notes", cursor={"seen": 2}, records=emitted + 1)
    time.sleep(60)


def wrong_sum():
    part()
    say("DETAIL_COVERAGE", stream="notes", considered=4, records=2, gaps=1, skipped=0)
    time.sleep(60)


def wrong_coverage():
    part()
    say("DETAIL_COVERAGE", stream="notes", considered=4, records=3, gaps=1, skipped=0)
    time.sleep(60)


def wrong_message():
    part()
    say("RECORD", stream="notes", key="x")
    time.sleep(60)


def unknown_stream():
    part()
    say("RECORD", stream="letters", key="l1", emitted_at=EMITTED_AT, data={})
    say("STATE", stream="notes", cursor={"seen": 2})
    time.sleep(60)


def undeclared_state():
    part()
    say("STATE", stream="letters", cursor={"seen": 2})
    time.sleep(60)


def deep_state():
    """A cursor that no reader of JSON takes, and so no cursor at all."""
    part()
    print('{"type":"STATE","stream":"notes","cursor":' + "[" * 10_000 + "]" * 10_000 + "}", flush=True)
    say("DONE", status="succeeded", records_emitted=emitted + 1)


def odd_bytes():
    """Other ends of lines, a mark before the first, names twice, thousands of streams, and no end of the last line."""
    global emitted
    sys.stdin.close()
    out = sys.stdout.buffer
    out.write(b"\xef\xbb\xbf" + json.dumps({"type": "PROGRESS", "message": "hello"}).encode() + b"\r\n")
    for number in range(3000):
        out.write(json.dumps({"type": "SCHEMA", "stream": "s%d" % number, "schema": {}}).encode() + b"\r\n")
    out.write(b'{"type":"RECORD","stream":"notes","key":"first","key":"twice","emitted_at":"%s",'
              b'"data":{"text":"one","text":"two \\u0000"}}\r\n' % EMITTED_AT.encode())
    out.write(b'{"type":"RECORD","stream":"notes","key":"raw \xff","emitted_at":"x","data":{}}\n\x00\n')
    emitted += 1
    out.write(json.dumps({"type": "DONE", "status": "succeeded", "records_emitted": emitted}).encode())
    out.flush()


def crash():
    part()
    raise RuntimeError("the other side closed the door, token=" + os.environ.get("SECRET", ""))


def exit_code():
    part()
    done()
    sys.exit(3)


def gives_up():
    part()
    done("failed", error={"message": "no more pages"})


def silence():
    part()
    time.sleep(60)


def flood():
    """A wrong message, and then no end."""
    part()
    say("RECORD", stream="notes", key="x")
    while True:
        record("again", "and again")


def chatter():
    part()
    done()
    while True:
        print("one more thing", flush=True)


def mutter():
    """Talks without end, but not to annals."""
    part()
    while True:
        print("working", file=sys.stderr, flush=True)


def orphan():
    """Ends well, and leaves somebody behind who has its pipes."""
    record("n1", "one")
    subprocess.Popen(["sleep", "60"])
    done()


def deserted():
    """Ends without DONE, and leaves somebody behind who has its pipes."""
    part()
    subprocess.Popen(["sleep", "60"])
    os._exit(3)


def family():
    """Says nothing, with a child that says nothing either."""
    part()
    child = subprocess.Popen(["sleep", "60"])
    print("child: %d" % child.pid, file=sys.stderr, flush=True)
    time.sleep(60)


def interaction():
    part()
    say("INTERACTION", request_id="r1", kind="manual_action", message="sign in again", link="https://notes.example/login")
    print("answer: " + sys.stdin.readline().strip(), file=sys.stderr, flush=True)
    time.sleep(60)


def garbage():
    record("n1", "one")
    print("Traceback: not a message")
    print('{"type":"RECORD","stream":"notes"', flush=True)
    print("\x1e\x00\x1b[31m")
    print()
    say("APPLAUSE", loud=True)
    print("g" * ((16 << 20) + 1), flush=True)
    record("n2", "two")
    say("DETAIL_GAP_RECOVERED", stream="notes", key="never asked for")
    done()
    print("one more thing", flush=True)


def huge():
    part()
    record("huge", "h" * (16 << 20))
    done()


def changes():
    """Keys of the second argument get the texts behind them; `-` deletes."""
    for pair in sys.argv[2].split(","):
        key, text = pair.split("=")
        if text == "-":
            global emitted
            emitted += 1
            say("RECORD", stream="notes", key=key, emitted_at=EMITTED_AT, op="delete")
        else:
            record(key, text)
    done()


def many():
    """More than one piece and one file of the archive, in a single commit."""
    for number in range(3000):
        record("n%05d" % number, "%05d " % number * 1000)
    say("STATE", stream="notes", cursor=number, records=emitted)
    done()


def missing():
    for key in ["gone", "odd"]:
        say("DETAIL_GAP", stream="notes", key=key, **({"http_status": 404} if key == "gone" else {"reason": "malformed"}))
    done()


def says_file():
    """Everything in the file of the second argument, in every place that is shown."""
    for number, text in enumerate(json.load(open(sys.argv[2], encoding="utf-8"))):
        print(text, file=sys.stderr, flush=True)
        print(text, flush=True)
        say("PROGRESS", message=text)
        say("X" + text)
        record("n%d" % number, text)
        say("DETAIL_GAP", stream="notes", key="g%d" % number, reason="timeout", message=text, locator=text)
    done()


def gives_up_with_file():
    done("failed", error={"message": open(sys.argv[2], encoding="utf-8").read()})


def environment():
    for name, value in sorted(os.environ.items()):
        record(name, value)
    done()


start = json.loads(sys.stdin.readline())
assert start["type"] == "START" and start["protocol_version"] == 1
print("start: " + json.dumps(start), file=sys.stderr, flush=True)
say("SCHEMA", stream="notes", schema={"type": "object", "properties": {"text": {"type": "string"}}})
globals()[sys.argv[1]]()
