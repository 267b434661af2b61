-- Directories of projects, by the name that a client has for them.
create table project (
  file bigint not null references file (id),
  name text not null,
  path text not null,
  instance bigint not null references instance (id),
  primary key (file, name)
);
create index project_by_name on project (instance, name);
