-- The commit that last changed a row, so that a reader of records can go on from one. Rows of older archives have 0.
alter table session add column changed bigint not null default 0;
alter table message add column changed bigint not null default 0;
alter table tool_call add column changed bigint not null default 0;
alter table record add column changed bigint not null default 0;
create index session_by_changed on session (changed);
create index record_by_changed on record (changed);

-- Rows that are gone: sessions (0), messages (1) and calls (2).
create table removed (
  id integer primary key,
  changed bigint not null,
  instance bigint not null,
  kind integer not null,
  session text not null,
  key bigint not null,
  at bigint not null
);
create index removed_by_change on removed (changed);
