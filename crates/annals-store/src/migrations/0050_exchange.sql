-- Blobs that another archive sent and no file refers to yet, by whose they are: 0 for owners, or the id of a member.
create table staged_blob (
  holder bigint not null,
  blob bigint not null references blob (id),
  at bigint not null,
  primary key (holder, blob)
) without rowid;
create index staged_blob_by_blob on staged_blob (blob);

-- Homes that came from other archives, by the name they have there: two members may have machines of one name.
create table received_home (
  holder bigint not null,
  source text not null,
  machine text not null,
  root text not null,
  instance bigint not null references instance (id),
  -- The archive that sent it last.
  archive blob not null,
  -- 'exact', or 'masked' if its secrets were replaced before they were sent.
  policy text not null,
  first_at bigint not null,
  last_at bigint not null,
  primary key (holder, source, machine, root)
) without rowid;
create index received_home_by_instance on received_home (instance);

-- The digest of what was received of a file: the same again is nothing new, also if parts of it were forgotten here.
create table received_file (
  file integer primary key references file (id),
  digest blob not null
);

-- Archives that this one sends to, and what they have of each file.
create table hub (
  archive blob primary key,
  url text not null,
  policy text not null,
  confirmed_at bigint,
  pushed_at bigint,
  -- The last commit that was sent as a whole, and what was chosen to be sent.
  pushed_commit bigint not null,
  choice text not null,
  -- The last commit of that archive that was fetched as a whole.
  pulled_commit bigint not null
) without rowid;
create table pushed_file (
  archive blob not null,
  file bigint not null references file (id),
  stamp text not null,
  primary key (archive, file)
) without rowid;
