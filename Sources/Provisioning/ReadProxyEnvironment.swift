import Glibc
import Routing
import Settings

/// The next proxies of Larder's own environment, if a rule takes them.
func readProxyEnvironment(for rules: [RouteRule]) throws(ProvisioningFault) -> ProxyEnvironment {
    guard let rule = rules.first(where: { $0.ways == .environment }) else { return ProxyEnvironment() }
    let environment: ProxyEnvironment
    do throws(ProxyEnvironment.Fault) {
        environment = try ProxyEnvironment { name in
            guard let value = unsafe getenv(name) else { return nil }
            return unsafe String(cString: value)
        }
    } catch {
        throw ProvisioningFault("routes[\(rule.number)].via", "the variable \(error.variable) \(error.text)")
    }
    for rule in rules where rule.ways == .environment {
        for case .proxy(let proxy) in environment.routes where proxy.logIn != nil && rule.grant?.covers(proxy) == true {
            throw ProvisioningFault(
                "routes[\(rule.number)].proxies", "the URL of \(proxy) in the environment has a user as well")
        }
    }
    return environment
}
