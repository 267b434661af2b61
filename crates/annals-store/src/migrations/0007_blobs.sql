-- Bytes by content: equal bytes are stored once, whichever versions, files and sources hold them. `base` is the blob that
-- a delta (packing 2) is the difference from.
create table blob (
  id integer primary key,
  hash blob not null unique,
  length bigint not null,
  packing integer not null,
  base bigint references blob (id),
  data blob not null
);
create index blob_by_base on blob (base) where base is not null;

-- Segments point at blobs. Their bytes are moved step by step before the next migration.
alter table segment add column blob bigint;
create index segment_unmoved on segment (id) where blob is null;
