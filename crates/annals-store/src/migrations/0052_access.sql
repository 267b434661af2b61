-- Tokens may expire, and sessions of browsers end with the token that started them.
alter table token add column expires_at bigint;
alter table browser add column ends_at bigint;

-- Who read a session of somebody else, once a day and way: 0 is the owner of the machine, else the id of a member. The session is
-- named by its source and id, which a rebuild does not change.
create table access (
  id integer primary key,
  viewer bigint not null,
  holder bigint not null,
  source text not null,
  session text not null,
  kind integer not null,
  day bigint not null,
  first_at bigint not null,
  last_at bigint not null,
  unique (holder, source, session, viewer, kind, day)
);
create index access_by_time on access (last_at, id);
