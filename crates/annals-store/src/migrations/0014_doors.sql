-- The index keeps terms within secrets apart. An older index does not: it is dropped, and the next run that writes reads
-- the archived files again.
delete from search_block;
delete from search_segment;
insert into setting (name, value)
  select 'rebuilding', 1 where exists (select 1 from file) and not exists (select 1 from setting where name = 'rebuilding');

-- Sessions of browsers, by the hash of their cookie. `member` is null for the owner of the machine.
create table browser (
  id integer primary key,
  hash blob not null unique,
  member bigint references member (id),
  port integer not null,
  agent text not null,
  started_at bigint not null,
  last_used bigint not null,
  expires_at bigint not null
);

-- Links that start such a session, each of them once.
create table browser_link (
  hash blob primary key,
  member bigint references member (id),
  expires_at bigint not null
);
