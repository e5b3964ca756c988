package import Message

/// Finds the rules that may concern a request, without a look at the others.
///
/// Each rule stands in one place: by its hosts, or by what else it asks for. Who searches still asks whether the rule holds; the index only leaves out
/// rules that cannot. Nothing is allocated by a search.
package struct RuleIndex: Sendable, Equatable {
    private var hosts = HostIndex()
    /// Lists of hosts, each asked once, with the positions of the rules that name it.
    private var lists: [ListedPositions] = []
    private var clients = AddressIndex()
    private var addresses = AddressIndex()
    private var users: [String: [Int]] = [:]
    private var groups: [String: [Int]] = [:]
    /// The positions of all rules in `addresses`, for as long as the address is not known.
    private var addressed: [Int] = []
    /// The positions of the rules that can be found by nothing else, in ascending order.
    private var others: [Int] = []

    /// By what a rule is found.
    package enum Place: Sendable { case host, who }

    /// - Parameters:
    ///   - rules: the conditions of the rules with their positions, in ascending order.
    ///   - place: `host`: by the host and by all else. `who`: by client, user and group alone.
    package init(_ rules: [(position: Int, conditions: RuleConditions)], by place: Place = .host) {
        var rulesOfClients: [(Int, [AddressRange])] = []
        var rulesOfAddresses: [(Int, [AddressRange])] = []
        for (position, conditions) in rules {
            if place == .host, !conditions.hosts.isEmpty || !conditions.hostLists.isEmpty {
                hosts.add(conditions.hosts, at: position)
                for list in conditions.hostLists { add(list, position) }
            } else if !conditions.clients.isEmpty, conditions.clientLists.isEmpty {
                rulesOfClients.append((position, conditions.clients))
            } else if !conditions.users.isEmpty, conditions.userLists.isEmpty {
                for user in Set(conditions.users) { users[user, default: []].append(position) }
            } else if !conditions.groups.isEmpty {
                for group in Set(conditions.groups) { groups[group, default: []].append(position) }
            } else if place == .host, !conditions.addresses.isEmpty, conditions.addressLists.isEmpty {
                rulesOfAddresses.append((position, conditions.addresses))
                addressed.append(position)
            } else {
                others.append(position)
            }
        }
        clients = AddressIndex(rulesOfClients)
        addresses = AddressIndex(rulesOfAddresses)
    }

    private mutating func add(_ list: HostList, _ position: Int) {
        guard let index = lists.firstIndex(where: { $0.list.file == list.file }) else {
            return lists.append(ListedPositions(list: list, positions: [position]))
        }
        if lists[index].positions.last != position { lists[index].positions.append(position) }
    }

    /// The first position below `bound` whose rule may concern the request and holds.
    ///
    /// - Parameter address: what the host resolved to; nil if it is not known.
    package func first(
        for request: RuleRequest, address: IPAddress?, below bound: Int = .max, where holds: (Int) -> Bool
    ) -> Int? {
        var best = Rules.first(of: others, below: bound, where: holds)
        // A rule for an IPv4 address may concern an IPv6 address that stands for it.
        for other in address?.embedded?.addresses ?? [] {
            best = first(named: .address(other), below: best ?? bound, where: holds) ?? best
            best = addresses.first(for: other, below: best ?? bound, where: holds) ?? best
        }
        best = first(named: request.destination, below: best ?? bound, where: holds) ?? best
        if let client = request.client {
            best = clients.first(for: client, below: best ?? bound, where: holds) ?? best
        }
        if let address {
            best = addresses.first(for: address, below: best ?? bound, where: holds) ?? best
        } else {
            best = Rules.first(of: addressed, below: best ?? bound, where: holds) ?? best
        }
        guard let identity = request.identity else { return best }
        if let positions = users[identity.name] {
            best = Rules.first(of: positions, below: best ?? bound, where: holds) ?? best
        }
        for group in identity.groups {
            guard let positions = groups[group] else { continue }
            best = Rules.first(of: positions, below: best ?? bound, where: holds) ?? best
        }
        return best
    }

    /// Whether some position below `bound` has a rule that may concern the client and holds, in an index by `who`.
    package func contains(for request: RuleRequest, below bound: Int, where holds: (Int) -> Bool) -> Bool {
        if Rules.first(of: others, below: bound, where: holds) != nil { return true }
        if let client = request.client, clients.first(for: client, below: bound, where: holds) != nil { return true }
        guard let identity = request.identity else { return false }
        if let positions = users[identity.name], Rules.first(of: positions, below: bound, where: holds) != nil {
            return true
        }
        return identity.groups.contains { group in
            groups[group].map { Rules.first(of: $0, below: bound, where: holds) != nil } ?? false
        }
    }

    /// Among the rules that name the host.
    private func first(named host: DestinationHost, below bound: Int, where holds: (Int) -> Bool) -> Int? {
        var best = hosts.first(for: host, below: bound, where: holds)
        for listed in lists where (listed.positions.first ?? .max) < best ?? bound {
            guard listed.list.content.contains(host) else { continue }
            best = Rules.first(of: listed.positions, below: best ?? bound, where: holds) ?? best
        }
        return best
    }

    private struct ListedPositions: Sendable, Equatable {
        let list: HostList
        var positions: [Int]
    }
}
