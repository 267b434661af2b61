//! `annals searches`: saved searches.

use clap::Args;
use serde_json::json;

use crate::cli::ui::table::Column;
use crate::cli::{Context, Outcome};
use annals_core::{Error, Result, Scope};

#[derive(Args)]
#[command(
    after_help = "`annals search --save NAME QUERY` saves a search, `annals search --saved NAME` runs it."
)]
pub struct SearchesArguments {
    /// Remove the search of this name
    #[arg(long, value_name = "NAME")]
    remove: Option<String>,
}

pub fn run(context: &mut Context, options: &SearchesArguments) -> Result<Outcome> {
    let Some(store) = context.archive()? else { return list(context, &[]) };
    let Some(name) = &options.remove else {
        let door = context.door(&store)?;
        let searches = context.view(&store, &door).saved_searches()?;
        return list(context, &searches);
    };
    drop(store);
    let mut store = context.archive_or_new()?;
    let door = context.door(&store)?;
    let versions = {
        let view = context.view(&store, &door);
        view.query_of_saved(name)?.ok_or_else(|| unknown(name))?;
        view.saving(name, None)?
    };
    store.arrange(Scope::Owner, &versions)?;
    let searches = context.view(&store, &door).saved_searches()?;
    if context.json {
        return list(context, &searches).map(|_| Outcome::Done);
    }
    if !context.quiet {
        context.output.line(format!("{}: removed", door.show(name)))?;
    }
    Ok(Outcome::Done)
}

pub fn unknown(name: &str) -> Error {
    Error::new(format!("no search is saved as {name:?}")).hint("`annals searches` lists saved searches")
}

fn list(context: &mut Context, searches: &[crate::view::SavedSearch]) -> Result<Outcome> {
    if context.json {
        context.output.json(&json!({ "searches": searches, "next_cursor": null }))?;
    } else if searches.is_empty() {
        if !context.quiet {
            context.output.note("no saved searches");
            context.output.note("hint: `annals search --save NAME QUERY` saves one");
        }
    } else {
        let columns = [Column::text("name"), Column::text("query").cut_end(24)];
        let rows: Vec<Vec<String>> =
            searches.iter().map(|search| vec![search.name.to_string(), search.query.to_string()]).collect();
        context.output.table("", &columns, &rows)?;
    }
    Ok(if searches.is_empty() { Outcome::Nothing } else { Outcome::Done })
}
