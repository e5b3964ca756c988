/// The page `/fleet`: all nodes, as the node that is asked knows them. It loads only `/stats?fleet`.
///
/// - Parameter nonce: the security policy lets only styles and scripts with this nonce through.
func fleetPage(nonce: String) -> String {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Larder: the fleet</title>
    <link rel="icon" href="data:image/svg+xml,\(dashboardIcon)">
    <style nonce="\(nonce)">\(dashboardStyle)\n\(fleetStyle)</style>
    </head>
    \(fleetBody)
    <script nonce="\(nonce)">\(fleetScript)</script>
    </html>
    """
}

private let fleetBody = """
    <body>
    <header>
      \(dashboardJar)
      <h1>Fleet</h1><span id="server" class="quiet"></span>
      <span class="spring"></span>
      <a href="/" class="quiet">this node</a><span id="state" class="pill" role="status">connecting</span>
    </header>
    <p class="card alarm" id="alarm" role="alert" hidden></p>
    <main id="fleet" hidden>
      <section class="tiles" aria-label="At a glance">
        <div class="tile"><h2>Nodes</h2><p class="big" id="nodes-up">–</p><p class="quiet" id="nodes-other"></p></div>
        <div class="tile"><h2>Hit ratio</h2><p class="big" id="ratio">–</p><p class="quiet" id="requests"></p></div>
        <div class="tile"><h2>From other nodes</h2><p class="big" id="shared">–</p><p class="quiet" id="shared-bytes"></p></div>
        <div class="tile"><h2>Saved</h2><p class="big" id="saved">–</p><p class="quiet" id="saved-of"></p></div>
      </section>
      <section class="card all"><div class="title"><h2>Nodes</h2></div>
        <div class="wide-table"><table id="nodes"></table></div><p class="quiet" id="unreadable" hidden></p></section>
      <section class="card all"><div class="title"><h2>Where answers came from</h2><span class="spring"></span>
        <span id="sources" class="sources"></span></div>
        <div class="wide-table"><table id="answers"></table></div></section>
      <section class="card all"><div class="title"><h2>Stores and purges</h2></div>
        <div class="wide-table"><table id="stores"></table></div></section>
    </main>
    <footer class="quiet"><a href="/">dashboard</a> <a href="/stats?fleet">/stats?fleet</a>
      <a href="/metrics?fleet">/metrics?fleet</a><span class="spring"></span><code>larder stats --fleet</code></footer>
    <noscript><p class="quiet">The numbers need JavaScript; <a href="/stats?fleet">/stats?fleet</a> has them as JSON.</p></noscript>
    </body>
    """

private let fleetStyle = """
    #alarm { margin-bottom: 14px; }
    .wide-table { overflow-x: auto; }
    .wide-table td { white-space: nowrap; }
    .sources { display: flex; flex-wrap: wrap; gap: 4px 12px; font-size: 12.5px; color: var(--quiet); }
    .sources .dot { margin-right: 5px; }
    #answers .bar { width: 150px; margin: 0 0 0 auto; }
    .memory-hits { background: var(--a); fill: var(--a); } .disk-hits { background: var(--revalidated); fill: var(--revalidated); }
    .shared-hits { background: var(--tunnel); fill: var(--tunnel); } .peer-hits { background: var(--opened); fill: var(--opened); }
    .joined { background: var(--refused); fill: var(--refused); } .revalidations { background: var(--stale); fill: var(--stale); }
    .from-origin { background: var(--miss); fill: var(--miss); }
    .gone td { color: var(--quiet); } .sum td { font-weight: 600; }
    .sum td { border-top: 2px solid var(--line); }
    @media (max-width: 560px) { #server { display: none; } .wide-table { margin: 0 -14px; padding: 0 14px; } }
    """

private let fleetScript = #"""
    \#(dashboardHelpers)
    const sources = [
      ["memory", "memory_hits", "memory-hits"], ["disk", "disk_hits", "disk-hits"],
      ["shared", "shared_hits", "shared-hits"], ["peers", "peer_hits", "peer-hits"],
      ["joined", "joined", "joined"], ["revalidated", "revalidated", "revalidations"],
      ["origin", "from_origin", "from-origin"]];
    const words = { "up": "connected", "not-following": "does not follow", "draining": "draining", "alone": "alone",
      "silent": "silent", "unknown": "unknown" };
    // A node of another release may not have every figure.
    const shown = (unit, value) => value === undefined ? "–" : unit(value);

    function pill(n) {
      const box = document.createElement("span");
      box.className = n.state === "up" ? "pill good" : n.state === "unknown" || n.state === "draining" ? "pill" : "pill bad";
      box.textContent = words[n.state] || n.state;
      box.title = n.state === "silent" || n.state === "unknown" ? `last heard ${span(n.age_seconds)} ago` : "";
      return box;
    }
    const news = n => n.state === "silent" || n.state === "unknown" ? `${span(n.age_seconds)} ago` : "now";

    function table(id, heads, nodes, sum, cells) {
      const lines = nodes.map(n => {
        const line = row(cells(n));
        if (n.state === "silent") line.className = "gone";
        return line;
      });
      if (sum && nodes.length > 1) {
        const line = row(cells(sum));
        line.className = "sum";
        lines.push(line);
      }
      byId(id).replaceChildren(row(heads, "th"), ...lines);
    }

    function bar(n) {
      const box = document.createElement("div"), drawing = shape("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" });
      box.className = "bar";
      let x = 0;
      for (const [, member, kind] of sources) {
        const width = n.requests ? (n[member] || 0) / n.requests * 100 : 0;
        if (width) drawing.append(shape("rect", { class: kind, x, width, height: 10 }));
        x += width;
      }
      box.append(drawing);
      return box;
    }

    function legend() {
      byId("sources").replaceChildren(...sources.map(([label, , kind]) => {
        const box = document.createElement("span"), dot = document.createElement("span");
        dot.className = `dot ${kind}`;
        box.append(dot, label);
        return box;
      }));
    }

    function draw(f) {
      const up = f.nodes.filter(n => !["silent", "unknown"].includes(n.state)).length;
      const sum = { name: "sum", ...f.sum };
      byId("fleet").hidden = false;
      byId("alarm").hidden = f.connected && !f.failure;
      text("alarm", f.connected ? (f.failure ? `This node does not follow the purges of the others: ${f.failure}` : "")
        : `No connection to the Redis for ${since(f.away_since)}${f.failure ? ": " + f.failure : ""}. `
          + "This node serves its clients alone; of the others it shows the last figures that it knows.");
      text("server", `seen from ${f.node}, by ${f.server}`);
      byId("state").className = f.connected ? "pill good" : "pill bad";
      text("state", f.connected ? "connected" : "alone");

      big("nodes-up", [count(up), `of ${count(f.nodes.length)}`]);
      const releases = [...new Set(f.nodes.map(n => n.release))];
      text("nodes-other", releases.length === 1 ? `all of release ${releases[0]}` : `releases ${releases.join(", ")}`);
      text("ratio", percent(sum.hit_ratio ?? null));
      text("requests", `of ${count(sum.requests || 0)} requests`);
      const other = (sum.shared_hits || 0) + (sum.peer_hits || 0);
      big("shared", [count(other), sum.requests ? percent(other / sum.requests) : ""]);
      text("shared-bytes", size((sum.bytes_shared || 0) + (sum.bytes_from_peers || 0)));
      big("saved", sized(sum.bytes_saved || 0));
      text("saved-of", `of ${size(sum.bytes_served || 0)} to clients`);

      table("nodes", ["node", "release", "up", "state", "heard", "requests", "hit ratio", "to clients", "saved", "now"], f.nodes, sum,
        n => [n.name + (n.asked ? " (this node)" : "") + (n.namesake ? " (two with this name)" : ""), n.release || "",
          n.uptime === undefined ? "" : span(n.uptime), n.state ? pill(n) : "", n.state ? news(n) : "",
          shown(count, n.requests), percent(n.hit_ratio ?? null), shown(size, n.bytes_served), shown(size, n.bytes_saved),
          shown(units.bytesPerSecond, n.bandwidth_to_clients)]);
      table("answers", ["node", "", ...sources.map(s => s[0])], f.nodes, sum,
        n => [n.name, bar(n), ...sources.map(([, member]) => shown(count, n[member]))]);
      const part = (used, budget) => used === undefined ? "–" : `${size(used)} of ${size(budget)}`;
      table("stores", ["node", "in memory", "memory", "on disk", "disk", "purges applied", "stale marks"], f.nodes, sum,
        n => [n.name, shown(count, n.memory_responses), part(n.memory_used, n.memory_budget), shown(count, n.disk_responses),
          n.disk_budget ? part(n.disk_used, n.disk_budget) : "none", shown(count, n.purges_applied), shown(count, n.stale_marks)]);
      byId("unreadable").hidden = !f.unreadable;
      text("unreadable", f.unreadable ? `${count(f.unreadable)} more in the register, whose figures this node cannot read: `
        + "an earlier release, another secret, or a name that somebody made up." : "");
    }

    async function refresh() {
      if (document.visibilityState === "visible") {
        try {
          const answer = await fetch("/stats?fleet", { cache: "no-store", signal: AbortSignal.timeout(5000) });
          const figures = await answer.json();
          document.body.classList.remove("asleep");
          if (answer.ok) draw(figures);
          else {
            byId("alarm").hidden = false;
            text("alarm", figures.error);
            byId("state").className = "pill";
            text("state", "no fleet");
          }
        } catch (error) {
          document.body.classList.add("asleep");
          byId("state").className = "pill bad";
          text("state", "no answer");
        }
      }
      setTimeout(refresh, interval);
    }
    legend();
    refresh();
    """#
