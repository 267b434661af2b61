-- Each time something was forgotten: `state` says how far that got. What is in the trash comes back until `expires_at`.
create table forgetting (
  id integer primary key,
  at bigint not null,
  reason text not null,
  state integer not null,
  expires_at bigint,
  -- What it was, in numbers.
  account text not null
);

-- What was forgotten, by hash, so that it stays forgotten: lines and documents, and texts inside of others.
create table forgotten_line (
  hash blob not null,
  forgetting bigint not null references forgetting (id),
  length bigint not null,
  primary key (hash, forgetting)
) without rowid;
create table forgotten_text (
  hash blob not null,
  forgetting bigint not null references forgetting (id),
  length bigint not null,
  rolling bigint not null,
  primary key (hash, forgetting)
) without rowid;

-- Files that were forgotten as a whole. Their names are here while they are in the trash.
create table forgotten_file (
  file bigint not null references file (id),
  forgetting bigint not null references forgetting (id),
  path text,
  logical_path text,
  primary key (file, forgetting)
) without rowid;

-- The bytes of what is in the trash.
create table trashed_segment (
  forgetting bigint not null references forgetting (id),
  file bigint not null references file (id),
  version bigint not null,
  byte_offset bigint not null,
  length bigint not null,
  blob bigint not null references blob (id),
  primary key (forgetting, file, version, byte_offset)
) without rowid;
create index trashed_segment_by_blob on trashed_segment (blob);
