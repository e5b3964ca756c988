/// `/proxy.pac`: tells a browser to send everything through the proxy, except what is on its own machine and what `pac.direct` names.
///
/// Without a second choice behind the proxy: a browser that went around it unnoticed would do what rules forbid.
func proxyConfigurationScript(_ place: ProxyPlace, _ direct: DirectDestinations) -> String {
    """
    function FindProxyForURL(url, host) {
      host = host.toLowerCase().replace(/\\.$/, "");
      if (host === "localhost" || host === "127.0.0.1" || host === "::1" || host === "[::1]" || host === "\(place.plainHost)") {
        return "DIRECT";
      }
    \(direct.isEmpty ? "" : "  if (\(direct.condition)) {\n    return \"DIRECT\";\n  }\n")  return "PROXY \(place.authority)";
    }

    """
}
