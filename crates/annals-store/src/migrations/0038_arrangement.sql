-- What people arranged: every version of every star, tag, name, note, hidden mark and saved search. Nothing here refers to
-- a row that is rebuilt.
create table arrangement (
  id integer primary key,
  -- Whose it is: 0 for owners, the id of a member, or less than 0 for the admins of an organisation.
  holder bigint not null,
  kind text not null,
  source text not null,
  target text not null,
  message text not null,
  field text not null,
  item text not null,
  -- Null once it is removed.
  value text,
  at bigint not null,
  -- The version that counts.
  newest integer not null,
  -- The commit that wrote it, or made it count.
  changed bigint not null
);
create index arrangement_newest on arrangement (holder, field, source, target) where newest = 1;
create index arrangement_versions on arrangement (holder, kind, source, target, message, field, item);
