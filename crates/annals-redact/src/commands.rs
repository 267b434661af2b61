//! Commands and statements that take a secret: what follows their option is one, words too.

/// The start of a command, and a pattern for the option before the secret.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("docker login", "-p"),
    ("podman login", "-p"),
    ("nerdctl login", "-p"),
    ("skopeo login", "-p"),
    ("registry login", "-p"),
    ("oras login", "-p"),
    ("az login", "-p"),
    ("cf login", "-p"),
    ("docker\",\"login", "-p"),
    ("redis-cli", "(?-i:-a|--pass)"),
    ("mongosh", "(?-i:-p|--password)"),
    ("mongodump", "-p"),
    ("mongorestore", "-p"),
    ("mongoexport", "-p"),
    ("mongoimport", "-p"),
    ("mongo -u", "-p"),
    ("cqlsh", "(?-i:-p)"),
    ("sqlcmd", "(?-i:-P)"),
    ("bcp", "(?-i:-P)"),
    ("mosquitto_pub", "(?-i:-P)"),
    ("mosquitto_sub", "(?-i:-P)"),
    ("zip", "(?-i:-\\w*P)"),
    ("openssl enc", "(?-i:-k)"),
    ("ldapsearch", "(?-i:-w)"),
    ("ldapmodify", "(?-i:-w)"),
    ("ldapadd", "(?-i:-w)"),
    ("ldapwhoami", "(?-i:-w)"),
    ("mysqladmin", "password"),
];

/// Between two arguments: blanks, or the quotes and comma of a list.
const BETWEEN: &str = r#"(?:[\\"']{0,4}[ \t]+|[\\"']{1,4},[ ]?)"#;

/// What follows the start of a command, with the secret as its group.
pub(super) fn pattern(option: &str) -> String {
    let argument = r#"[\\"']{0,4}[^\s\\"'`|;&]{1,80}"#;
    format!(
        r#"(?:{BETWEEN}{argument}){{0,12}}?(?:{BETWEEN}[\\"']{{0,4}})?(?:{option}){BETWEEN}[\\"']{{0,4}}([^\s\\"'`]+)"#
    )
}

/// Contexts whose secret may be a word: kind, prefix, a pattern for the rest with the secret as its group, and the words
/// one of which must come before.
#[rustfmt::skip]
pub(super) const CERTAIN: &[(&str, &str, &str, &str)] = &[
    ("aws", "secret access key", r#"[ \t]\[[^\]\r\n]{0,24}\]:[ \t]*([^\s"'`\\]+)"#, ""),
    ("secret", "define(", r#"[ ]?['"](?:\w{0,40}(?:PASSWORD|PASSWD|SECRET|SALT)|(?:SECURE_)?(?:AUTH|NONCE|LOGGED_IN|SECRET|ENCRYPTION)_KEY)['"][ ]?,[ ]?'([^'\r\n\\]{3,128})'"#, ""),
    ("password", "identified by", r#"[ \t]+[\\"']{1,4}([^\s"'`\\]+)"#, "user|grant"),
    ("password", "identified by", r#"[ \t]+([^\s"'`\\;,.]+)(?:[ \t]*;|[ \t]+(?:account|default|profile|quota|container)\b)"#, "user|grant"),
    ("password", "identified with", r#"[ \t]+\w{1,40}[ \t]+by[ \t]+[\\"']{1,4}([^\s"'`\\]+)"#, ""),
    ("password", " password '", r"([^\s'`\\]+)'", "alter|create|role|user"),
    ("password", "= password(", r#"[\\"']{1,4}([^\s"'`\\]+)[\\"']{1,4}\)"#, ""),
    ("password", ":5432:", r#"[^\s:"'`/]{1,64}:[^\s:"'`/]{1,64}:([^\s:"'`\\]+)"#, ""),
    ("password", ":*:", r#"[^\s:"'`/]{1,64}:[^\s:"'`/]{1,64}:([^\s:"'`\\]+)"#, ""),
    ("password", "machine ", r#"[^\s"'`]{1,100}?(?:[ \t]|\\[nrt]|[\r\n]){1,4}(?:login(?:[ \t]|\\[nrt]|[\r\n])+[^\s"'`\\]{1,100}(?:[ \t]|\\[nrt]|[\r\n]){1,4})?password[ \t]+([^\s\\"'`]+)"#, ""),
    ("password", "default login ", r#"[^\s"'`]{1,100}(?:[ \t]|\\[nrt]|[\r\n]){1,4}password[ \t]+([^\s\\"'`]+)"#, ""),
    ("password", ";password='", r#"([^"'\r\n\\<>{}]+)'"#, ""),
    ("password", ";password=", r#"([^;"'\r\n\\<>{}]+)"#, ""),
    ("password", "; password=", r#"([^;"'\r\n\\<>{}]+)"#, ""),
    ("password", ";pwd=", r#"([^;"'\r\n\\<>{}]+)"#, ""),
    ("password", "; pwd=", r#"([^;"'\r\n\\<>{}]+)"#, ""),
    ("password", "password=", r#"([^\s;"'`\\<>{}&]+);(?:[a-z]+ ?[a-z]+)="#, ""),
    ("password", "user=", r#"[^\s"'`&;,]{1,64} password='?([^\s"'`\\,]+)"#, ""),
    ("password", "mysql", r#"\w{0,8}(?:[ \t]+[^\s\\"'`]{1,64}){0,8}?[ \t]+-p[\\"']{0,4}([^\s\\"'`]+)"#, ""),
    ("password", "mariadb", r#"\w{0,8}(?:[ \t]+[^\s\\"'`]{1,64}){0,8}?[ \t]+-p[\\"']{0,4}([^\s\\"'`]+)"#, ""),
    ("password", "7z ", r#"[a-z](?:[ \t]+[^\s\\"'`]{1,64}){0,8}?[ \t]+-p[\\"']{0,4}([^\s\\"'`]+)"#, ""),
    ("password", "pass:", r#"([^\s"'`\\]+)"#, "-pass"),
    ("password", "-storepass", r#"(?:wd)?[ \t"',]+([^\s"'`\\]+)"#, ""),
    ("password", "-keypass", r#"(?:wd)?[ \t"',]+([^\s"'`\\]+)"#, ""),
    ("password", "storepass", r#"(?:wd)?[ \t]+([^\s"'`\\]+)"#, "keytool|jarsigner"),
    ("password", " -u", r#"[ \t]*[\\"']{0,4}[^\s:\\"'`$/]{1,100}:([^\s\\"'`]+)"#, "curl"),
    ("password", "--user", r#"[ \t=]+[\\"']{0,4}[^\s:\\"'`$/]{1,100}:([^\s\\"'`]+)"#, "curl"),
    ("password", "htpasswd", r#"[ \t]+-\w*b\w*(?:[ \t]+-\w+)*[ \t]+[^\s"'`]{1,100}[ \t]+[^\s"'`]{1,100}[ \t]+['"]?([^\s"'`\\]+)"#, ""),
    ("password", "echo ", r#"(?:-n )?['"]?([^\s"'`|\\]+)['"]?[ \t]*\|[ \t]*(?:sudo -S|[^\n|]{1,100}--password-stdin|[^\n|]{0,20}passwd --stdin)"#, ""),
    ("password", "echo ", r#"(?:-e )?['"]?[\w.-]{1,32}:([^\s"'`|\\]+)['"]?[ \t]*\|[ \t]*(?:sudo )?chpasswd"#, ""),
    ("password", "net user ", r#"[^\s"'`]{1,64}[ \t]+['"]?([^\s"'`/\\]+)['"]?[ \t]+/add"#, ""),
    ("password", "smbclient", r#"(?:[ \t]+[^\s"'`]{1,100}){0,6}?[ \t]+-U[ \t]*['"]?[^\s%"'`]{1,64}%([^\s"'`\\]+)"#, ""),
    ("password", "rabbitmqctl", r#"[ \t]+(?:add_user|change_password)[ \t]+[^\s"'`]{1,64}[ \t]+['"]?([^\s"'`\\]+)"#, ""),
    ("password", "convertto-securestring", r#"[ \t]+(?:-string[ \t]+)?[\\"']{1,4}([^\s"'`\\]+)"#, ""),
    ("password", "xfreerdp", r#"(?:[ \t]+[^\s"'`]{1,100}){0,8}?[ \t]+/p:['"]?([^\s"'`\\]+)"#, ""),
    ("password", "requirepass", r#"[ \t]+['"]?([^\s"'`\\]+)"#, ""),
    ("password", "masterauth", r#"[ \t]+['"]?([^\s"'`\\]+)"#, ""),
    ("password", "ansible_password=", r#"([^\s"'`\\]+)"#, ""),
    ("password", "from-literal=password=", r#"([^\s"'`\\]+)"#, ""),
    ("password", "&password=", r#"([^\s"'`\\&#<>;,)]+)"#, ""),
    ("password", "?password=", r#"([^\s"'`\\&#<>;,)]+)"#, ""),
    ("secret", "env ", r#"(?-i:[A-Z][A-Z0-9_]{0,40}_)?(?-i:PASSWORD|PASSWD|SECRET)[ \t]+['"]?([^\s"'`\\=]+)"#, ""),
    ("password", "password</key>", r#"(?:\s|\\[nrt]){0,16}<string>([^<\r\n]+)<"#, ""),
    ("token", "authorization", r#"[\\"'`*\] ]{0,8}[:=][\\"'`* ]{0,8}ssws[ \t]+([\w-]+)"#, ""),
    ("password", "storepassword ", r#"['"]([^\s"'`\\]+)['"]"#, ""),
    ("password", "keypassword ", r#"['"]([^\s"'`\\]+)['"]"#, ""),
];
