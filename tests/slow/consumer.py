#!/usr/bin/env python3
"""An outside program that keeps a copy of an archive: loads every stream into a database and resumes where it stopped.

    consumer.py DATABASE PROGRAM...

Runs `PROGRAM... export --format records` with the states that it saved, and applies what it prints to DATABASE, by the keys that
each stream declares. Everything up to a STATE is one transaction together with it. Prints how many records there were.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile


def main():
    path, program = sys.argv[1], sys.argv[2:]
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("create table if not exists record (stream text, key text, data text, primary key (stream, key))")
    database.execute("create table if not exists state (stream text primary key, cursor text)")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as saved:
        for stream, cursor in database.execute("select stream, cursor from state order by stream"):
            print(json.dumps({"type": "STATE", "stream": stream, "cursor": cursor}), file=saved)
    try:
        export = subprocess.Popen(program + ["export", "--format", "records", "--state", saved.name], stdout=subprocess.PIPE)
        count = follow(database, export.stdout)
    finally:
        os.unlink(saved.name)
    if export.wait() != 0:
        sys.exit(f"export ended with {export.returncode}")
    print(count)


def follow(database, lines):
    keys, count, emitted = {}, 0, None
    database.execute("begin")
    for line in lines:
        message = json.loads(line)
        stream = message.get("stream")
        if message["type"] == "SCHEMA":
            keys[stream] = message["primary_key"]
            if message["mode"] == "full":
                database.execute("delete from record where stream = ?", (stream,))
        elif message["type"] == "RECORD":
            key = json.dumps([message["data"][field] for field in keys[stream]])
            count += 1
            if message["op"] == "delete":
                database.execute("delete from record where stream = ? and key = ?", (stream, key))
            else:
                data = json.dumps(message["data"], sort_keys=True)
                database.execute("insert or replace into record values (?, ?, ?)", (stream, key, data))
        elif message["type"] == "STATE":
            database.execute("insert or replace into state values (?, ?)", (stream, message["cursor"]))
            database.execute("commit")
            database.execute("begin")
        elif message["type"] == "DONE":
            emitted = message["records_emitted"]
        else:
            sys.exit(f"unknown message {message['type']}")
    database.execute("commit")
    if emitted != count:
        sys.exit(f"{count} records, but {emitted} were announced")
    return count


main()
