-- What a client reports that a response cost, in picodollars. Unknown in older archives until their rows are read again.
alter table usage add column cost bigint;

-- What a client reports that a session cost as a whole, in picodollars.
alter table session add column cost bigint;
update session set cost = cast(round(json_extract(facts, '$.cost_usd') * 1000000000000) as bigint)
where json_extract(facts, '$.cost_usd') >= 0 and json_extract(facts, '$.cost_usd') < 1000000;
create index session_with_cost on session (id) where cost is not null;

-- Sums of responses with a reported cost (1) are apart from those whose cost is estimated (0).
alter table usage_sum rename to usage_sum_before;
create table usage_sum (
  session bigint not null,
  day bigint not null,
  model bigint not null,
  prompt_class integer not null,
  reported integer not null,
  responses bigint not null,
  input bigint not null,
  output bigint not null,
  cache_read bigint not null,
  cache_write bigint not null,
  cache_write_hour bigint not null,
  reasoning bigint not null,
  cost bigint,
  primary key (session, day, model, prompt_class, reported)
) without rowid;
insert into usage_sum
select session, day, model, prompt_class, 0, responses, input, output, cache_read, cache_write, cache_write_hour,
       reasoning, null
from usage_sum_before;
drop table usage_sum_before;
