-- Homes that were seen: one machine's folder of one source.
create table instance (
  id integer primary key,
  source text not null,
  machine text not null,
  root text not null,
  status text not null,
  reason text not null,
  first_seen bigint not null,
  last_scanned bigint,
  unique (source, machine, root)
);

-- Files of a home, and documents made of a client's database rows. `version` is the newest that was captured,
-- `rows_version` the one that rows point into.
create table file (
  id integer primary key,
  instance bigint not null references instance (id),
  path text not null,
  unit text not null,
  store text not null,
  reader text not null,
  framing text not null,
  encoding text not null,
  document integer not null,
  mutable integer not null,
  version bigint not null,
  rows_version bigint not null,
  size bigint not null,
  content_size bigint not null,
  parsed bigint not null,
  inode bigint,
  modified bigint,
  changed bigint,
  reader_version integer not null,
  twin_of bigint,
  first_seen bigint not null,
  gone_at bigint,
  unique (instance, path)
);
create index file_by_unit on file (instance, unit);

-- What a reader needs to go on; apart from `file`, so that a look at all files stays small.
create table reader_state (
  file integer primary key references file (id),
  state text not null
);

create table version (
  file bigint not null references file (id),
  version bigint not null,
  size bigint not null,
  modified bigint,
  captured_at bigint not null,
  -- When a document's source ended: bytes do not tell, and a rebuild has to know.
  gone_at bigint,
  primary key (file, version)
) without rowid;

-- The bytes. About 256 KiB each before compression; the last one of a version is replaced until it is full.
create table segment (
  id integer primary key,
  file bigint not null references file (id),
  version bigint not null,
  place bigint not null,
  length bigint not null,
  hash blob not null,
  packing integer not null,
  data blob not null,
  unique (file, version, place)
);

create table session (
  id integer primary key,
  instance bigint not null references instance (id),
  key text not null,
  title text,
  cwd text,
  git_branch text,
  parent text,
  parent_kind text,
  models text not null,
  archived integer not null,
  started_at bigint,
  last_at bigint,
  facts text not null,
  messages bigint not null,
  user_messages bigint not null,
  assistant_messages bigint not null,
  tool_calls bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  cache_write_hour_tokens bigint not null,
  reasoning_tokens bigint not null,
  gone_at bigint,
  unique (instance, key)
);
create index session_by_time on session (coalesce(last_at, -9223372036854775807), key);

-- What each file says about a session; the session row is their merge.
create table session_part (
  session bigint not null references session (id),
  file bigint not null references file (id),
  rank integer not null,
  facts text not null,
  primary key (session, file)
) without rowid;
create index session_part_by_file on session_part (file);

create table message (
  session bigint not null,
  file bigint not null,
  place bigint not null,
  length bigint not null,
  role integer not null,
  kind integer not null,
  at bigint,
  key bigint not null,
  inherited integer not null,
  copied integer not null,
  tally integer not null,
  model bigint,
  primary key (session, file, place)
) without rowid;
create index message_by_key on message (key);

-- Further lines of messages that were written in several.
create table message_line (
  session bigint not null,
  file bigint not null,
  place bigint not null,
  line bigint not null,
  length bigint not null,
  primary key (session, file, place, line)
) without rowid;

-- Titles that one file gives to the session of another, and the rows they may name.
create table summary (
  file bigint not null,
  place bigint not null,
  row_key bigint not null,
  text text not null,
  session bigint,
  primary key (file, place)
) without rowid;
create index summary_by_session on summary (session);
create table landmark (
  row_key bigint not null,
  session bigint not null,
  file bigint not null,
  primary key (row_key, session, file)
) without rowid;

create table tool_call (
  session bigint not null,
  file bigint not null,
  place bigint not null,
  length bigint not null,
  at bigint,
  key bigint not null,
  inherited integer not null,
  copied integer not null,
  call_id text not null,
  name bigint not null,
  kind integer not null,
  title text not null,
  parent bigint,
  message bigint,
  model bigint,
  full_output text,
  output_place bigint,
  output_length bigint,
  detail_place bigint,
  detail_length bigint,
  ended_at bigint,
  ok integer,
  exit_code bigint,
  duration_ms bigint,
  primary key (session, file, place)
) without rowid;
create index tool_call_by_key on tool_call (key);

create table usage (
  session bigint not null,
  file bigint not null,
  place bigint not null,
  length bigint not null,
  at bigint,
  key bigint not null,
  inherited integer not null,
  copied integer not null,
  model bigint,
  input bigint not null,
  output bigint not null,
  cache_read bigint not null,
  cache_write bigint not null,
  cache_write_hour bigint not null,
  reasoning bigint not null,
  primary key (session, file, place)
) without rowid;
create index usage_by_key on usage (key);

create table file_touch (
  session bigint not null,
  file bigint not null,
  place bigint not null,
  number integer not null,
  path bigint not null,
  operation integer not null,
  before_start bigint,
  before_end bigint,
  after_start bigint,
  after_end bigint,
  primary key (session, file, place, number)
) without rowid;

create table link (
  session bigint not null,
  file bigint not null,
  kind text not null,
  other text not null,
  position text,
  primary key (session, file, kind, other)
) without rowid;

-- Native records of streams that have no transcript table.
create table record (
  id integer primary key,
  instance bigint not null references instance (id),
  stream text not null,
  key text not null,
  version bigint not null,
  session text,
  at bigint,
  file bigint not null,
  file_version bigint not null,
  place bigint not null,
  length bigint not null,
  hash bigint not null,
  seen_version bigint not null,
  seen_at bigint not null,
  deleted_at bigint,
  unique (instance, stream, key, version)
);
create index record_by_file on record (file);

-- Words that repeat: tool names, models, paths.
create table name (
  id integer primary key,
  text text not null unique
);

-- Every physical line of every file's rows version falls into one of these.
create table coverage (
  file bigint not null,
  status text not null,
  kind text not null,
  lines bigint not null,
  bytes bigint not null,
  primary key (file, status, kind)
) without rowid;

-- Where the broken lines are (the first hundred of a file).
create table problem (
  file bigint not null,
  place bigint not null,
  length bigint not null,
  what text not null,
  primary key (file, place)
) without rowid;

create table gap (
  id integer primary key,
  instance bigint not null,
  stream text not null,
  key text not null,
  locator text not null,
  reason text not null,
  attempts integer not null,
  status text not null,
  first_seen bigint not null,
  last_tried bigint not null,
  next_try bigint,
  unique (instance, stream, key)
);

create table run (
  id integer primary key,
  started_at bigint not null,
  ended_at bigint,
  process bigint not null,
  command text not null,
  report text
);

create table cursor (
  instance bigint not null,
  name text not null,
  value text not null,
  primary key (instance, name)
) without rowid;

create table setting (
  name text primary key,
  value blob not null
) without rowid;
