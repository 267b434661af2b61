-- Texts that imports added to a file, by their hash: what was captured before is not captured again.
create table capture (
  file bigint not null references file (id),
  hash blob not null,
  primary key (file, hash)
) without rowid;

-- Where rows stand in a conversation that branches. Parents come before their children, and siblings in the order of
-- the client. Rows of other conversations stand in the order of their places.
create table node (
  session bigint not null,
  file bigint not null,
  place bigint not null,
  position bigint not null,
  key bigint not null,
  parent bigint,
  -- On the branch that the client shows.
  current integer not null,
  -- A step of its own; results of calls are told with their call.
  told integer not null,
  primary key (session, file, place)
) without rowid;
