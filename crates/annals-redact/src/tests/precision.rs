//! Clean text stays readable: placeholders, code, prose, hashes, ids, images and lock files.

use super::{REDACTOR, made_up};

const CLEAN: &str = include_str!("clean.txt");

fn masks(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    REDACTOR.each(text, &mut |secret| found.push(format!("{}: {}", secret.kind, &text[secret.range])));
    found
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let wrong: Vec<_> = CLEAN.lines().filter(|line| !masks(line).is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(masks(CLEAN), Vec::<String>::new());
}

/// Pseudo-random digits in an alphabet, the same in every run.
fn random(seed: &mut u64, length: usize, alphabet: &[u8]) -> String {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        alphabet[(*seed % alphabet.len() as u64) as usize] as char
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn generated_text_stays() {
    const HEX: &[u8] = b"0123456789abcdef";
    const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const SAFE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    let (mut bytes, mut wrong) = (0, Vec::new());
    for _ in 0..400 {
        let mut hex = |length| random(&mut seed, length, HEX);
        let uuid = format!("{}-{}-4{}-a{}-{}", hex(8), hex(4), hex(3), hex(3), hex(12));
        let mut text = format!(
            "commit {}\nindex {}..{} 100644\n\"id\": \"{uuid}\", \"key\": \"{uuid}\"\nchecksum = \"{}\"\n\
             sha256:{}  a.tar.gz\n/nix/store/{}-x/bin\nGET /a/{uuid} 200 12ms request_id={}\n",
            hex(40),
            hex(7),
            hex(7),
            hex(64),
            hex(64),
            hex(32),
            hex(32),
        );
        text += &format!("\"integrity\": \"sha512-{}==\",\n", random(&mut seed, 86, BASE64));
        text += &format!("src=\"data:image/png;base64,{}\"\n", random(&mut seed, 3000, BASE64));
        text += &format!("\"blob\": \"{}\"\n", random(&mut seed, 1000, SAFE));
        bytes += text.len();
        wrong.extend(masks(&text));
    }
    #[expect(clippy::print_stdout, clippy::disallowed_macros, reason = "figures are printed for people")]
    {
        println!("{} false masks in {bytes} bytes of generated text", wrong.len());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(masks(&made_up("\"integrity\": \"sha512-§§==\"")), Vec::<String>::new());
}
