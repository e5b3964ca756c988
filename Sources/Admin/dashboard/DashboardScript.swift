/// The dashboard's script. It asks for `/stats` and `/transfers` every two seconds and draws them; text is inserted as text, never as HTML.
/// The constant `figures` in it is `dashboardFigures`.
let dashboardScript = #"""
    \#(dashboardHelpers)
    const figures = \#(dashboardFigures);
    const samplesMax = 150, history = [];

    const pairs = (id, rows) => byId(id).replaceChildren(...rows.map(cells => row(cells)));
    function rowsOf(section, values) {
      return figures[section]
        .filter(f => f.unit in units && (f.prominence === "overview" || f.prominence === "trouble" && values[f.name]))
        .map(f => [f.label, units[f.unit](values[f.name])]);
    }
    const headed = (title, rows) => rows.map(([label, value]) => [`${title} ${label}`, value]);
    const summed = (section, values) => Object.fromEntries(
      figures[section].map(f => [f.name, values.reduce((sum, v) => sum + v[f.name], 0)]));

    function line(values, top) {
      const step = 600 / (samplesMax - 1), start = samplesMax - values.length;
      let path = "", pen = "M";
      values.forEach((value, i) => {
        if (value === null) { pen = "M"; return; }
        path += `${pen}${((start + i) * step).toFixed(1)} ${(136 - 132 * Math.min(1, value / top)).toFixed(1)}`;
        pen = "L";
      });
      return path;
    }
    function chart(id, series, top) {
      const nodes = [];
      for (const y of [4, 70, 136]) nodes.push(shape("line", { x1: 0, x2: 600, y1: y, y2: y }));
      series.forEach(([name, values], i) => {
        const path = line(values, top), first = values.findIndex(v => v !== null);
        if (i === 0 && path.includes("L")) {
          const x = ((samplesMax - values.length + first) * 600 / (samplesMax - 1)).toFixed(1);
          nodes.push(shape("path", { class: "under", d: `${path}L600 136L${x} 136Z` }));
        }
        nodes.push(shape("path", { class: name, d: path }));
      });
      byId(id).replaceChildren(...nodes);
    }
    function ceiling(value) {
      let top = 64 * 1024;
      while (top < value) top *= 2;
      return top;
    }

    function drawOutcomes(requests) {
      const bar = shape("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" });
      let x = 0;
      for (const name of figures.outcomes) {
        const width = requests.total ? requests[name] / requests.total * 100 : 0;
        if (width) bar.append(shape("rect", { class: name, x, width, height: 10 }));
        x += width;
      }
      byId("outcome-bar").replaceChildren(bar);
      pairs("outcomes", figures.outcomes.map(name => {
        const label = document.createElement("span"), dot = document.createElement("span");
        dot.className = `dot ${name}`;
        label.append(dot, name);
        const number = document.createElement("span");
        number.textContent = count(requests[name]);
        if (!requests[name]) { number.className = "zero"; label.className = "zero"; }
        return [label, number];
      }));
    }

    function draw(s, transfers) {
      const last = history[history.length - 1];
      history.push({ at: performance.now(), total: s.requests.total, clients: s.bandwidth.to_clients,
        origins: s.bandwidth.from_origins, ratio: s.hit_ratio.requests, bytes: s.hit_ratio.bytes });
      if (history.length > samplesMax) history.shift();
      const now = history[history.length - 1];
      const rate = last && now.total >= last.total ? (now.total - last.total) / ((now.at - last.at) / 1000) : 0;

      text("version", s.version);
      byId("fleet-link").hidden = !s.fleet.node;
      text("uptime", `up ${span(s.uptime_seconds)}`);
      const disksOff = s.zones.filter(z => z.disk && z.disk.state !== "on");
      byId("state").className = s.draining || disksOff.length ? "pill bad" : "pill good";
      text("state", s.draining ? "draining" : disksOff.length ? "disk off" : "serving");
      text("ratio", percent(s.hit_ratio.requests));
      text("ratio-bytes", `${percent(s.hit_ratio.bytes)} of bytes`);
      byId("ring").setAttribute("stroke-dasharray", `${((s.hit_ratio.requests || 0) * 100).toFixed(1)} 100`);
      byId("ring").style.visibility = s.hit_ratio.requests ? "visible" : "hidden";
      big("saved", sized(s.bytes.saved));
      text("saved-of", `of ${size(s.bytes.to_clients)} sent`);
      big("rate", [rate >= 100 ? count(Math.round(rate)) : rate.toFixed(rate >= 10 || rate === 0 ? 0 : 1), "/s"]);
      text("total", `${count(s.requests.total)} in all`);
      const [value, unit] = sized(s.bandwidth.to_clients);
      big("bandwidth", [value, unit + "/s"]);
      text("bandwidth-origin", `${size(s.bandwidth.from_origins)}/s from origins`);

      const top = ceiling(Math.max(...history.map(h => Math.max(h.clients, h.origins))));
      text("bandwidth-top", `0 – ${size(top)}/s`);
      chart("bandwidth-chart", [["a", history.map(h => h.clients)], ["b", history.map(h => h.origins)]], top);
      chart("ratio-chart", [["a", history.map(h => h.ratio)], ["c", history.map(h => h.bytes)]], 1);

      drawOutcomes(s.requests);
      const used = s.memory.budget ? s.memory.used / s.memory.budget : 0;
      text("memory-percent", percent(used));
      byId("memory-fill").setAttribute("width", Math.min(100, used * 100));
      pairs("memory", rowsOf("memory", s.memory)
        .concat(s.zones.length > 1 ? s.zones.map(z => ["zone " + z.name, `${size(z.used)} of ${size(z.budget)}`]) : []));
      drawDisks(s.zones.filter(z => z.disk), disksOff);
      pairs("connections", headed("clients", rowsOf("clients", s.clients)).concat(
        headed("origins", rowsOf("origins", s.origins)), headed("tunnels", rowsOf("tunnels", s.tunnels))));
      pairs("names", rowsOf("dns", s.dns));
      const trouble = ["refusals", "errors", "peers", "authentication", "fleet", "log"].flatMap(
        section => figures[section].filter(f => f.prominence === "trouble" && s[section][f.name])
          .map(f => [f.label, s[section][f.name]]));
      trouble.sort((a, b) => b[1] - a[1]);
      pairs("trouble", trouble.length ? trouble.slice(0, 12).map(([label, n]) => [label, count(n)])
        : [["nothing so far", ""]]);
      byId("workers").replaceChildren(row(["worker", ...figures.workers.map(f => f.label)], "th"),
        ...s.workers.map(w => row([`${w.number}`, ...figures.workers.map(f => count(w[f.name]))])));
      drawEcosystems(s.ecosystems);
      drawCertificateRefusals(s.certificate_refusals);
      drawCertificateRequests(s.certificate_requests.filter(r => r.required));
      drawNextProxies(s.next_proxies);
      drawPACFiles(s.pac_files);
      drawOriginsDown(s.origins_down);
      drawNamesUnanswered(s.names_unanswered);
      drawBandwidthLimits(s.bandwidth_limits);
      drawLimitRules(s.limit_rules);
      drawUnverified(s.unverified_origins);
      drawCredentials(s.credentials);
      drawJars(s.cookie_jars);
      drawTransfers(transfers);
    }

    function drawEcosystems(ecosystems) {
      byId("ecosystems-card").hidden = !ecosystems.length;
      byId("ecosystems").replaceChildren(row(["recipe", ...figures.ecosystems.map(f => f.label)], "th"),
        ...ecosystems.map(e => row([e.name, ...figures.ecosystems.map(f => units[f.unit](e[f.name]))])));
    }

    function drawCertificateRefusals(refusals) {
      byId("refusals-card").hidden = !refusals.length;
      byId("certificate-refusals").replaceChildren(row(["client", "host", "what it did", "times", "last"], "th"),
        ...refusals.slice(0, 12).map(r => row([r.client || "a Unix socket", r.host, r.signal, count(r.count), r.last_at])));
    }

    function drawCertificateRequests(requests) {
      byId("requests-card").hidden = !requests.length;
      byId("certificate-requests").replaceChildren(row(["host", "times", "last"], "th"),
        ...requests.slice(0, 12).map(r => row([r.host, count(r.count), r.last_at])));
    }

    function drawCredentials(credentials) {
      byId("credentials-card").hidden = !credentials.length;
      byId("credentials").replaceChildren(row(["credential", "schemes", "refused by"], "th"),
        ...credentials.map(c => row([c.name, c.schemes.join(", "), c.refusals.map(r =>
          r.origin + (r.given_up ? ": given up since " : ": since ") + r.since).join("; ") || "nobody"])));
    }

    function drawJars(jars) {
      byId("jars-card").hidden = !jars.length;
      byId("jars").replaceChildren(row(["jar", "cookies", "requests with them", "rejected"], "th"),
        ...jars.map(j => row([j.name, count(j.cookies), count(j.sent),
          Object.entries(j.rejected).map(([reason, n]) => `${reason}: ${count(n)}`).join(", ") || "none"])));
    }

    function drawNextProxies(proxies) {
      byId("proxies-card").hidden = !proxies.length;
      byId("next-proxies").replaceChildren(row(["proxy", "state", "since"], "th"),
        ...proxies.map(p => row([p.url, p.works ? "works" : p.failure, p.failing_since || ""])));
    }

    function drawPACFiles(files) {
      byId("pac-card").hidden = !files.length;
      byId("pac-files").replaceChildren(row(["script", "state", "fetched", "questions", "failures"], "th"),
        ...files.map(f => row([f.path, pacState(f), f.fetched_at ? since(f.fetched_at) + " ago" : "",
          count(f.questions), count(f.failures)])));
    }
    function pacState(f) {
      if (!f.fetch_failing) return f.failure ? `works; the last answer failed: ${f.failure}` : "works";
      return `${f.fetched_at ? "old" : "no script"}: not fetched for ${since(f.fetch_failing_since)}, ${f.fetch_failure}`;
    }

    function drawUnverified(origins) {
      byId("unverified-card").hidden = !origins.length;
      byId("unverified-origins").replaceChildren(row(["host", "rule", "what anybody on the way can do"], "th"),
        ...origins.map(o => row([o.host, `origins[${o.rule}]`,
          o.pinned ? "nothing: its key is pinned" : "read and change everything"])));
    }

    function drawBandwidthLimits(limits) {
      byId("limits-card").hidden = !limits.length;
      byId("bandwidth-limits").replaceChildren(row(["limit", "rate", "last 5 s", "under way"], "th"),
        ...limits.map(l => row([l.limit, size(l.rate) + "/s", size(l.average) + "/s", l.flows])));
    }

    function drawLimitRules(rules) {
      byId("limit-rules-card").hidden = !rules.length;
      byId("limit-rules").replaceChildren(row(["rule", ...figures.limit_rules.map(f => f.label)], "th"),
        ...rules.map(r => row([r.name, ...figures.limit_rules.map(f => units[f.unit](r[f.name]))])));
    }

    function drawOriginsDown(origins) {
      byId("origins-card").hidden = !origins.length;
      byId("origins-down").replaceChildren(row(["origin", "since", "next attempt in"], "th"),
        ...origins.map(o => row([o.origin, o.since, o.retry_after + " s"])));
    }

    function drawNamesUnanswered(names) {
      byId("names-card").hidden = !names.length;
      byId("names-unanswered").replaceChildren(row(["name", "name servers", "since", "next attempt in"], "th"),
        ...names.map(n => row([n.name, n.servers, n.since, n.retry_after + " s"])));
    }

    function drawDisks(zones, off) {
      byId("disk-card").hidden = !zones.length;
      byId("disk-alarm").hidden = !off.length;
      text("disk-alarm", off.map(z => `The disk tier of zone ${z.name} is off: ${z.disk.reason}`).join(". "));
      const sums = summed("disk", zones.map(z => z.disk));
      const used = sums.size_bytes ? sums.used_bytes / sums.size_bytes : 0;
      text("disk-percent", percent(used));
      byId("disk-fill").setAttribute("width", Math.min(100, used * 100));
      const loading = zones.filter(z => !z.disk.loaded).map(z => ["zone " + z.name, "index being read"]);
      pairs("disk", rowsOf("disk", sums).concat(zones.length > 1 ? zones.map(z => ["zone " + z.name,
        `${size(z.disk.used_bytes)} of ${size(z.disk.size_bytes)}`]) : [], loading));
    }

    // The lines stay the same elements from one drawing to the next, so that bars move and buttons can be pressed.
    const lines = new Map();
    function transferLine(t) {
      const bar = document.createElement("progress"), end = document.createElement("button");
      end.textContent = "end";
      end.title = "ends this transfer; what was stored of it is kept";
      end.addEventListener("click", () => endTransfer(t.id));
      const line = row([`${t.method} ${t.url}`, bar, "", "", "", "", t.request_id || "", end]);
      line.firstChild.className = "url";
      line.firstChild.title = `${t.method} ${t.url}` + (t.client ? ` for ${t.client}` : "");
      return { line, bar, at: performance.now() - t.age_milliseconds, bytes: 0, rate: 0 };
    }
    function drawTransfers(transfers) {
      text("transfer-count", transfers.length ? count(transfers.length) : "");
      const shown = transfers.sort((a, b) => b.age_milliseconds - a.age_milliseconds).slice(0, 20);
      for (const id of [...lines.keys()]) if (!shown.some(t => t.id === id)) lines.delete(id);
      if (!shown.length) return pairs("transfers", [["none", ""]]);
      const heading = row(["transfer", "", "received", "rate", "state", "readers", "request ID", ""], "th");
      const rows = shown.map(t => {
        if (!lines.has(t.id)) lines.set(t.id, transferLine(t));
        const l = lines.get(t.id), now = performance.now(), cells = l.line.children;
        const total = t.received_bytes + t.sent_bytes;
        if (now > l.at) l.rate = Math.max(0, total - l.bytes) / ((now - l.at) / 1000);
        l.at = now;
        l.bytes = total;
        if (t.expected_bytes) { l.bar.max = t.expected_bytes; l.bar.value = t.received_bytes; }
        l.bar.hidden = !t.expected_bytes;
        const left = t.expected_bytes && l.rate ? ` · ${span(Math.round((t.expected_bytes - t.received_bytes) / l.rate))} left` : "";
        cells[2].textContent = (t.expected_bytes ? `${size(t.received_bytes)} of ${size(t.expected_bytes)}` : size(t.received_bytes))
          + (t.sent_bytes ? `, sent ${size(t.sent_bytes)}` : "");
        cells[3].textContent = size(Math.round(l.rate)) + "/s" + left;
        cells[4].textContent = `${t.state}, ${span(Math.round(t.age_milliseconds / 1000))}`;
        cells[5].textContent = count(t.readers);
        return l.line;
      });
      const table = byId("transfers");
      // A line that stays where it is must not be taken out: that would end a press of its button.
      [heading, ...rows].forEach((line, i) => {
        const present = table.children[i];
        if (present !== line && !(i === 0 && present && present.firstChild.nodeName === "TH")) table.insertBefore(line, present || null);
      });
      while (table.children.length > rows.length + 1) table.lastChild.remove();
    }

    let token = "";
    async function endTransfer(id) {
      token = token || prompt("The token of admin.token:") || "";
      if (!token) return;
      const answer = await fetch("/transfers/cancel", { method: "POST", body: id, headers: { Authorization: `Bearer ${token}` } });
      if (answer.ok) return;
      token = "";
      alert((await answer.json()).error);
    }

    async function refresh() {
      if (document.visibilityState === "visible") {
        try {
          const [stats, under] = await Promise.all([ask("/stats"), ask("/transfers")]);
          document.body.classList.remove("asleep");
          draw(stats, under.transfers);
        } catch (error) {
          document.body.classList.add("asleep");
          byId("state").className = "pill bad";
          text("state", "no answer");
        }
      }
      setTimeout(refresh, interval);
    }
    refresh();
    """#
