// Runs in a world of its own within the page, which its scripts do not see. The token, the device id and the cookies stay
// here: what is answered to annals holds none of them.
globalThis.annals = (() => {
  let token = null;
  let owner = "";

  const cookie = (name) => {
    const found = document.cookie.split("; ").find((part) => part.startsWith(name + "="));
    if (!found) return null;
    try {
      return decodeURIComponent(found.slice(name.length + 1));
    } catch {
      return found.slice(name.length + 1);
    }
  };

  // Seconds since 1970 at which a token ends; 0 when it does not say.
  const end = (text) => {
    const parts = text.split(".");
    if (parts.length !== 3) return 0;
    try {
      return JSON.parse(atob(parts[1].replaceAll("-", "+").replaceAll("_", "/"))).exp || 0;
    } catch {
      return 0;
    }
  };

  const pick = (told) => {
    const session = told?.session ?? told;
    const found = session?.accessToken ?? session?.access_token ?? told?.accessToken ?? told?.access_token;
    if (!found || !session?.user) return null;
    // Whose account it is, and which of their workspaces.
    owner = [session.user.id, cookie("_account") ?? session.account?.id].filter(Boolean).join(" ");
    return found;
  };

  const challenged = () =>
    document.title === "Just a moment..." ||
    !!document.querySelector('script[src*="challenge-platform"], iframe[src*="challenges.cloudflare.com"]');

  const session = async (origin) => {
    if (location.origin !== origin) return { logged_in: false, elsewhere: true };
    let found = null;
    let reached = true;
    try {
      // Fresher than the page after the token was renewed.
      const options = { credentials: "include", cache: "no-store", signal: AbortSignal.timeout(30000) };
      const answer = await fetch("/api/auth/session", options);
      found = pick(JSON.parse(await answer.text()));
    } catch (problem) {
      reached = problem instanceof SyntaxError;
    }
    if (!found && reached) {
      try {
        found = pick(JSON.parse(document.getElementById("client-bootstrap").textContent));
      } catch {}
    }
    const changed = found !== null && found !== token;
    token = found;
    return {
      logged_in: found !== null, reached, changed, ends: found ? end(found) : 0, challenge: challenged(), owner,
    };
  };

  const headers = (body) => {
    const told = { Accept: "*/*", "oai-language": "en-US", Authorization: `Bearer ${token}` };
    const device = cookie("oai-did");
    if (device) told["oai-device-id"] = device;
    const account = cookie("_account");
    if (account && /^[0-9a-f-]{36}$/.test(account)) told["ChatGPT-Account-Id"] = account;
    if (body !== null) told["Content-Type"] = "application/json";
    return told;
  };

  const within = async (limit, work) => {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), limit);
    try {
      return await work(stop.signal);
    } catch (problem) {
      return { status: 0, failure: stop.signal.aborted ? "late" : "unreachable" };
    } finally {
      clearTimeout(timer);
    }
  };

  const ask = (path, body, limit) =>
    within(limit, async (signal) => {
      const method = body === null ? "GET" : "POST";
      // What opens the account goes nowhere else, whatever an answer says.
      const options = {
        method, headers: headers(body), body, signal, credentials: "include", cache: "no-store", redirect: "error",
      };
      const answer = await fetch(path, options);
      const challenge = answer.headers.get("cf-mitigated") === "challenge";
      const after = Math.max(0, Number.parseInt(answer.headers.get("retry-after") ?? "0", 10) || 0);
      const type = answer.headers.get("content-type") ?? "";
      const text = await answer.text();
      // An answer that is streamed is one text.
      const streamed = type.startsWith("text/event-stream");
      return {
        status: answer.status, type: streamed ? "application/json" : type, challenge, after,
        body: streamed ? JSON.stringify({ stream: text }) : text,
      };
    });

  // Where this page has the content of files. Anything else of it, such as the session with its token, is no file.
  const HAS_FILES = /\/(estuary|files|download|content)(\/|$)/;

  // What a link leads to. One to a file of this page gets what the page itself would send, and nothing of that goes any
  // further: where it leads elsewhere, and to everybody else, it is followed without.
  const follow = async (link, signal) => {
    const options = { signal, cache: "no-store" };
    const ours = link.origin === location.origin && HAS_FILES.test(link.pathname);
    if (!ours) return fetch(link, { ...options, credentials: "omit" });
    try {
      return await fetch(link, { ...options, credentials: "include", headers: headers(null), redirect: "error" });
    } catch (problem) {
      if (signal.aborted) throw problem;
      return fetch(link, { ...options, credentials: "include" });
    }
  };

  // The bytes behind a link that `path` answers with.
  const bytes = async (path, limit) => {
    const reply = await ask(path, null, limit);
    if (reply.status !== 200) return reply;
    let found = null;
    try {
      found = JSON.parse(reply.body);
    } catch {
      return reply;
    }
    const address = found?.download_url ?? found?.url;
    if ((found?.status ?? "success") !== "success" || !address) return { ...reply, status: 404, body: "" };
    const link = new URL(address, location.origin);
    return within(limit, async (signal) => {
      const answer = await follow(link, signal);
      const content = new Uint8Array(await answer.arrayBuffer());
      // One letter for each byte.
      let text = "";
      for (let at = 0; at < content.length; at += 0x8000) {
        text += String.fromCharCode(...content.subarray(at, at + 0x8000));
      }
      // Whoever keeps the file knows nothing of the session: its refusal says nothing about that.
      return { status: answer.status === 401 ? 403 : answer.status, type: "bytes", challenge: false, body: text };
    });
  };

  return { session, ask, bytes };
})();
