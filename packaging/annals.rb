# Homebrew formula. A release fills in OWNER, VERSION and CHECKSUM (see .github/workflows/release.yml).
class Annals < Formula
  desc "Keep your whole history with AI assistants in one file, and search it"
  homepage "https://github.com/OWNER/annals"
  url "https://github.com/OWNER/annals/archive/refs/tags/vVERSION.tar.gz"
  sha256 "CHECKSUM"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/OWNER/annals.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/annals")
    generate_completions_from_executable(bin/"annals", "completions")
    system bin/"annals", "man", "--quiet", "--to", buildpath/"man"
    man1.install Dir[buildpath/"man/*.1"]
  end

  test do
    ENV["HOME"] = testpath
    assert_match version.to_s, shell_output("#{bin}/annals version")
    system bin/"annals", "up", "--no-serve"
    assert_path_exists testpath/".local/share/annals/annals.db" if OS.linux?
  end
end
