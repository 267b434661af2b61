//! `annals completions`: a script that completes verbs, options and sources in a shell.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, CommandFactory, ValueHint};
use clap_complete::{Shell, generate};

use crate::cli::{Arguments, Context, Outcome};
use annals_core::Result;
use annals_sources::registry;

#[derive(Args)]
#[command(after_help = "Where the script goes:\n  \
                  bash         annals completions bash > ~/.local/share/bash-completion/completions/annals\n  \
                  zsh          annals completions zsh > ~/.zfunc/_annals   (a directory in $fpath)\n  \
                  fish         annals completions fish > ~/.config/fish/completions/annals.fish\n  \
                  PowerShell   annals completions powershell >> $PROFILE")]
pub struct CompletionsArguments {
    /// Shell to complete in
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn run(context: &mut Context, options: &CompletionsArguments) -> Result<Outcome> {
    let mut script = Vec::new();
    generate(options.shell, &mut completed(Arguments::command()), "annals", &mut script);
    let wrote = context.output.stream().write_all(&script);
    context.output.check_write(wrote)?;
    Ok(Outcome::Done)
}

/// The command line with the values that can be listed: names of sources, directories and files.
fn completed(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        match name.as_deref() {
            Some("SOURCE") => {
                let names = registry().iter().map(|source| source.manifest().source);
                argument.value_parser(PossibleValuesParser::new(names))
            }
            Some("DIR") => argument.value_hint(ValueHint::DirPath),
            Some("FILE" | "FILE[:A[-B]]" | "PATH") => argument.value_hint(ValueHint::FilePath),
            _ => argument,
        }
    });
    command.mut_subcommands(completed)
}
