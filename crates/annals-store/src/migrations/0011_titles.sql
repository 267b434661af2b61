-- A title goes to the session whose own row it names. When another session gets that row too, the title is assigned again.
alter table landmark add column inherited integer not null default 0;
create index summary_by_row on summary (row_key);
