"""Runs the SQL of a Markdown file in a directory with DuckDB; prints the rows of every query as JSON."""

import json
import os
import re
import sys

import duckdb

document, folder = sys.argv[1:3]
text = open(document, encoding="utf-8").read()
os.chdir(folder)
connection = duckdb.connect()
answers = []
for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL):
    answer = connection.execute(block).fetchall()
    answers.append({"sql": block, "rows": [[str(value) for value in row] for row in answer]})
for sql in sys.argv[3:]:
    answers.append({"sql": sql, "rows": [[str(value) for value in row] for row in connection.execute(sql).fetchall()]})
print(json.dumps(answers))
