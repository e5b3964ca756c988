extension RuleConditions {
    /// Whether every request for which `other` holds fulfils these conditions. False where that is not certain.
    ///
    /// - Parameter readsPathsAlike: what holds for a path or a detail in `other` holds here, too: both rules allow, or this one denies.
    package func cover(_ other: RuleConditions, readingPathsAlike readsPathsAlike: Bool) -> Bool {
        coverHosts(of: other) && coverAddresses(of: other) && coverClients(of: other)
            && covers(ports, other.ports) { own, port in own.contains(port.lowerBound) && own.contains(port.upperBound)
            }
            && covers(methods, other.methods, ==) && covers(schemes, other.schemes, ==)
            && covers(serverNames, other.serverNames) { $0.covers($1) }
            && (paths.isEmpty || (readsPathsAlike && covers(paths, other.paths, ==)))
            && (details.isEmpty || (readsPathsAlike && details == other.details))
            && (types.isEmpty || covers(types, other.types, ==))
    }

    private func coverHosts(of other: RuleConditions) -> Bool {
        if hosts.isEmpty && hostLists.isEmpty { return true }
        guard !other.hosts.isEmpty || !other.hostLists.isEmpty else { return false }
        return other.hosts.allSatisfy { host in hosts.contains { $0.covers(host) } }
            && (hosts.contains(.any) || includes(hostLists, other.hostLists))
    }

    private func coverAddresses(of other: RuleConditions) -> Bool {
        guard namesAddresses else { return true }
        return other.namesAddresses && addressesCover(addresses, other.addresses)
            && includes(addressLists, other.addressLists)
    }

    private func coverClients(of other: RuleConditions) -> Bool {
        let namesClients = !clients.isEmpty || !clientLists.isEmpty
        let namesUsers = !users.isEmpty || !userLists.isEmpty
        if namesClients {
            guard !other.clients.isEmpty || !other.clientLists.isEmpty, addressesCover(clients, other.clients),
                includes(clientLists, other.clientLists)
            else { return false }
        }
        if namesUsers {
            guard !other.users.isEmpty || !other.userLists.isEmpty, other.users.allSatisfy(users.contains),
                includes(userLists, other.userLists)
            else { return false }
        }
        return covers(groups, other.groups, ==) && covers(listeners, other.listeners, ==)
    }
}

/// Of two conditions with values: no value is a condition that always holds.
private func covers<Value>(_ own: [Value], _ others: [Value], _ covers: (Value, Value) -> Bool) -> Bool {
    own.isEmpty || (!others.isEmpty && others.allSatisfy { other in own.contains { covers($0, other) } })
}

private func addressesCover(_ own: [AddressRange], _ others: [AddressRange]) -> Bool {
    others.allSatisfy { other in
        own.contains { $0.prefixLength <= other.prefixLength && $0.contains(other.first) }
    }
}

/// By the files: what is in them is not compared.
private func includes<Content>(_ own: [ListFile<Content>], _ others: [ListFile<Content>]) -> Bool {
    others.allSatisfy { other in own.contains { $0.file == other.file } }
}
