-- A segment is a place in a version and the blob that is there.
create table segment_of_blob (
  file bigint not null references file (id),
  version bigint not null,
  place bigint not null,
  length bigint not null,
  blob bigint not null references blob (id),
  primary key (file, version, place)
) without rowid;
insert into segment_of_blob (file, version, place, length, blob)
  select file, version, place, length, blob from segment;
drop table segment;
alter table segment_of_blob rename to segment;
create index segment_by_blob on segment (blob);
