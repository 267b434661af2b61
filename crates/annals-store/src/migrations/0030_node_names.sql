-- The client's own ids of the messages of branching conversations, also of those that are gone.
create table node_name (
  key bigint not null primary key,
  name text not null
) without rowid;
create index node_name_by_name on node_name (name);
