-- The text index: immutable segments, each with the passages it is about and blocks of sorted terms with the numbers
-- of the passages that hold them. A passage is alive while its epoch is that of its file.
alter table file add column search_epoch bigint not null default 0;
create table search_segment (
  id integer primary key,
  passages bigint not null,
  postings bigint not null,
  table_data blob not null
);
create table search_block (
  id integer primary key,
  segment bigint not null,
  first_term blob not null,
  data blob not null
);
create index session_by_title on session (title, instance);
create index tool_call_by_full_output on tool_call (full_output) where full_output is not null;
create unique index search_block_by_term on search_block (segment, first_term);
