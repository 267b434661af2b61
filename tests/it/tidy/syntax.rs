//! What the rules of the tidy test need to know about a source file: its paths and its method calls.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A line number and what is on it.
type At<T> = (usize, T);

#[derive(Default)]
pub struct Syntax {
    /// Imports, one for each member of a group, and all other paths.
    pub paths: Vec<At<Vec<String>>>,
    /// Names of methods that are called.
    pub calls: Vec<At<String>>,
}

impl Syntax {
    pub fn of(path: &str, text: &str) -> Syntax {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut syntax = Syntax::default();
        syntax.visit_file(&file);
        syntax
    }

    fn import(&mut self, line: usize, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(line, &with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(line, before, tree));
            }
            syn::UseTree::Name(name) => self.paths.push((line, with(&name.ident))),
            syn::UseTree::Rename(rename) => self.paths.push((line, with(&rename.ident))),
            syn::UseTree::Glob(_) => self.paths.push((line, before.to_vec())),
        }
    }

    /// Arguments of macros have no fixed grammar: names joined by `::` are paths.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_mark = |at: usize, mark: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) => {
                    let start = at;
                    let mut names = vec![ident.to_string()];
                    while is_mark(at + 1, ':') && is_mark(at + 2, ':') {
                        let Some(TokenTree::Ident(next)) = tokens.get(at + 3) else { break };
                        names.push(next.to_string());
                        at += 3;
                    }
                    let is_call = matches!(tokens.get(at + 1), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
                    if start > 0 && is_mark(start - 1, '.') && is_call {
                        self.calls.push((line(ident.span()), names.remove(0)));
                    } else {
                        self.paths.push((line(ident.span()), names));
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Syntax {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(line(item.use_token.span), &[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.paths.push((line(path.segments[0].ident.span()), names));
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.calls.push((line(call.method.span()), call.method.to_string()));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        self.tokens(of.tokens.clone());
        visit::visit_macro(self, of);
    }
}

fn line(span: Span) -> usize {
    span.start().line
}
