import CLarder

/// The dashboard at `/`: one page, which loads only `/stats` and `/transfers`.
///
/// - Parameter nonce: the security policy lets only styles and scripts with this nonce through.
func dashboardPage(nonce: String) -> String {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Larder</title>
    <link rel="icon" href="data:image/svg+xml,\(dashboardIcon)">
    <style nonce="\(nonce)">\(dashboardStyle)</style>
    </head>
    \(dashboardBody)
    <script nonce="\(nonce)">\(dashboardScript)</script>
    </html>
    """
}

/// Nothing from another site, nothing inline without the nonce, no frames, no forms.
func dashboardSecurityPolicy(nonce: String) -> String {
    """
    default-src 'none'; style-src 'nonce-\(nonce)'; script-src 'nonce-\(nonce)'; connect-src 'self'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
    """
}

/// 128 random bits in hexadecimal.
func randomNonce() -> String {
    var bytes = [UInt8](repeating: 0, count: 16)
    let outcome = unsafe bytes.withUnsafeMutableBytes { unsafe clarder_random($0.baseAddress, $0.count) }
    precondition(outcome == 0, "the kernel has no random bytes")
    return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// A jar, percent-encoded for a data URL.
let dashboardIcon = """
    %3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect x='7' y='3' width='18' height='5' rx='2' \
    fill='%23c46a3b'/%3E%3Crect x='5' y='9' width='22' height='20' rx='5' fill='%236b8f5e'/%3E%3Crect x='9' y='16' \
    width='14' height='7' rx='1.5' fill='%23faf6ee'/%3E%3C/svg%3E
    """

let dashboardJar = """
    <svg class="jar" viewBox="0 0 32 32" aria-hidden="true"><rect x="7" y="3" width="18" height="5" rx="2" class="lid"/>
      <rect x="5" y="9" width="22" height="20" rx="5" class="glass"/><rect x="9" y="16" width="14" height="7" rx="1.5"
      class="label"/></svg>
    """

private let dashboardBody = """
    <body>
    <header>
      \(dashboardJar)
      <h1>Larder</h1><span id="version" class="quiet"></span>
      <span class="spring"></span>
      <a id="fleet-link" href="/fleet" class="quiet" hidden>fleet</a>
      <span id="uptime" class="quiet"></span><span id="state" class="pill" role="status">connecting</span>
    </header>
    <main>
      <section class="tiles" aria-label="At a glance">
        <div class="tile ringed"><svg viewBox="0 0 64 64" class="ring" aria-hidden="true"><circle cx="32" cy="32" r="27"/>
          <circle id="ring" cx="32" cy="32" r="27" pathLength="100" stroke-dasharray="0 100"
          transform="rotate(-90 32 32)"/></svg>
          <div><h2>\(StatisticsSection.hitRatio.title)</h2><p class="big" id="ratio">–</p>
          <p class="quiet" id="ratio-bytes"></p></div></div>
        <div class="tile"><h2>Saved</h2><p class="big" id="saved">–</p><p class="quiet" id="saved-of"></p></div>
        <div class="tile"><h2>\(StatisticsSection.requests.title)</h2><p class="big" id="rate">–</p><p class="quiet" id="total"></p></div>
        <div class="tile"><h2>To clients</h2><p class="big" id="bandwidth">–</p>
          <p class="quiet" id="bandwidth-origin"></p></div>
      </section>
      <section class="card wide"><div class="title"><h2>\(StatisticsSection.bandwidth.title)</h2>
        <span class="key a">to clients</span><span class="key b">from origins</span>
        <span class="spring"></span><span class="quiet" id="bandwidth-top"></span></div>
        <svg id="bandwidth-chart" class="chart" viewBox="0 0 600 140" preserveAspectRatio="none" role="img"
        aria-label="Bandwidth to clients and from origins over the last five minutes"></svg></section>
      <section class="card wide"><div class="title"><h2>\(StatisticsSection.hitRatio.title)</h2>
        <span class="key a">of requests</span><span class="key c">of bytes</span>
        <span class="spring"></span><span class="quiet">0 – 100 %</span></div>
        <svg id="ratio-chart" class="chart" viewBox="0 0 600 140" preserveAspectRatio="none" role="img"
        aria-label="Hit ratio by requests and by bytes over the last five minutes"></svg></section>
      <section class="card"><div class="title"><h2>Outcomes</h2></div>
        <div id="outcome-bar" class="bar" aria-hidden="true"></div><table id="outcomes"></table></section>
      <div class="stack">
        <section class="card"><div class="title"><h2>\(StatisticsSection.memory.title)</h2><span class="spring"></span>
          <span class="quiet" id="memory-percent"></span></div>
          <div class="bar"><svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
          <rect id="memory-fill" width="0" height="10"/></svg></div><table id="memory"></table></section>
        <section class="card" id="disk-card" hidden><div class="title"><h2>Disk tier</h2><span class="spring"></span>
          <span class="quiet" id="disk-percent"></span></div><p class="alarm" id="disk-alarm" role="alert" hidden></p>
          <div class="bar"><svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
          <rect id="disk-fill" width="0" height="10"/></svg></div><table id="disk"></table></section>
        <section class="card"><div class="title"><h2>\(StatisticsSection.names.title)</h2></div><table id="names"></table></section>
      </div>
      <div class="stack">
        <section class="card"><div class="title"><h2>Connections</h2></div><table id="connections"></table></section>
        <section class="card"><div class="title"><h2>Workers</h2></div><table id="workers"></table></section>
      </div>
      <section class="card"><div class="title"><h2>Refused and failed</h2></div><table id="trouble"></table></section>
      <section class="card most" id="ecosystems-card" hidden><div class="title"><h2>Package ecosystems</h2></div>
        <table id="ecosystems"></table></section>
      <section class="card most" id="refusals-card" hidden><div class="title"><h2>Clients that do not accept Larder's certificate</h2></div>
        <table id="certificate-refusals"></table></section>
      <section class="card most" id="requests-card" hidden><div class="title"><h2>Origins that want a certificate of the client</h2></div>
        <table id="certificate-requests"></table></section>
      <section class="card most" id="unverified-card" hidden><div class="title"><h2>Origins that are NOT VERIFIED</h2></div>
        <table id="unverified-origins"></table></section>
      <section class="card most" id="limits-card" hidden><div class="title"><h2>Limits of the rate</h2></div>
        <table id="bandwidth-limits"></table></section>
      <section class="card all" id="limit-rules-card" hidden><div class="title"><h2>Limits of clients, users and groups</h2></div>
        <table id="limit-rules"></table></section>
      <section class="card most" id="origins-card" hidden><div class="title"><h2>Origins that do not accept connections</h2></div>
        <table id="origins-down"></table></section>
      <section class="card most" id="names-card" hidden><div class="title"><h2>Names that name servers do not answer</h2></div>
        <table id="names-unanswered"></table></section>
      <section class="card most" id="proxies-card" hidden><div class="title"><h2>Next proxies</h2></div>
        <table id="next-proxies"></table></section>
      <section class="card most" id="pac-card" hidden><div class="title"><h2>PAC files</h2></div>
        <table id="pac-files"></table></section>
      <section class="card most" id="credentials-card" hidden><div class="title"><h2>Credentials</h2></div>
        <table id="credentials"></table></section>
      <section class="card most" id="jars-card" hidden><div class="title"><h2>Cookie jars</h2></div>
        <table id="jars"></table></section>
      <section class="card all"><div class="title"><h2>Transfers under way</h2><span class="spring"></span>
        <span class="quiet" id="transfer-count"></span></div><table id="transfers"></table>
      </section>
    </main>
    <footer class="quiet"><a href="/stats">/stats</a> <a href="/metrics">/metrics</a> <a href="/health">/health</a>
      <a href="/transfers">/transfers</a><span class="spring"></span><code>larder purge URL</code></footer>
    <noscript><p class="quiet">The numbers need JavaScript; <a href="/stats">/stats</a> has them as JSON.</p></noscript>
    </body>
    """
