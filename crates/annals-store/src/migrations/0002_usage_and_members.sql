-- Tokens of a session by day (UTC, days since 1970), model and class of prompt length: what lists and sums read.
-- Copies are not in it.
create table usage_sum (
  session bigint not null,
  day bigint not null,
  model bigint not null,
  prompt_class integer not null,
  responses bigint not null,
  input bigint not null,
  output bigint not null,
  cache_read bigint not null,
  cache_write bigint not null,
  cache_write_hour bigint not null,
  reasoning bigint not null,
  primary key (session, day, model, prompt_class)
) without rowid;
insert into usage_sum
select session, coalesce((at - ((at % 86400000000) + 86400000000) % 86400000000) / 86400000000, 0),
       coalesce(model, 0),
       (input + cache_read + cache_write + cache_write_hour > 100000)
       + (input + cache_read + cache_write + cache_write_hour > 200000)
       + (input + cache_read + cache_write + cache_write_hour > 272000),
       count(*), cast(sum(input) as bigint), cast(sum(output) as bigint), cast(sum(cache_read) as bigint),
       cast(sum(cache_write) as bigint), cast(sum(cache_write_hour) as bigint), cast(sum(reasoning) as bigint)
from usage where not copied group by 1, 2, 3, 4;

-- Sums tell how many copies they leave out.
create index usage_copied on usage (session) where copied = 1;

create index session_by_parent on session (instance, parent);
create index record_by_stream on record (stream, id);

-- Lists skip sessions of other homes, and agents, without a look at their rows.
drop index session_by_time;
create index session_by_time on session (coalesce(last_at, -9223372036854775807), key, instance, parent_kind);
create index session_by_kind on session (instance, parent_kind);

create table organisation (
  id integer primary key,
  name text not null unique
);
-- A member who was removed stays as the owner of their homes, and may not ask any more.
create table member (
  id integer primary key,
  organisation bigint not null references organisation (id),
  name text not null unique,
  role text not null,
  added_at bigint not null,
  removed_at bigint
);
-- Only the hash of a token is kept.
create table token (
  id integer primary key,
  member bigint not null references member (id),
  hash blob not null unique,
  made_at bigint not null,
  last_used bigint,
  revoked_at bigint
);
-- Whose home it is; nobody's but the owner's where it is null.
alter table instance add column member bigint references member (id);
