/// `/proxy.pac`: tells a browser to send everything through the proxy, except what is on its own machine.
///
/// Without a second choice behind the proxy: a browser that went around it unnoticed would do what rules forbid.
func proxyConfigurationScript(_ place: ProxyPlace) -> String {
    """
    function FindProxyForURL(url, host) {
      if (host === "localhost" || host === "127.0.0.1" || host === "::1" || host === "[::1]" || host === "\(place.plainHost)") {
        return "DIRECT";
      }
      return "PROXY \(place.authority)";
    }

    """
}
