import Access
import Message
import Rules

extension Explainer {
    /// The rule that decides, what of its lists matches, and the report-only rules that match.
    mutating func describeRule(_ number: Int?, address: IPAddress?) {
        let request = request.access
        if let rule = number.flatMap(snapshot.access.rule(numbered:)) {
            let conditions = rule.conditions
            for list in conditions.hostLists {
                if let entry = list.content.entry(for: request.destination) { noteEntry("\(entry)", list.file) }
            }
            let address = request.destination.address ?? address
            for (lists, address) in [(conditions.addressLists, address), (conditions.clientLists, request.client)] {
                for list in lists {
                    if let range = address.flatMap(list.content.smallestRange) { noteEntry("\(range)", list.file) }
                }
            }
            for list in conditions.userLists {
                if let user = request.identity?.name, list.content.contains(user) { noteEntry(user, list.file) }
            }
        }
        for number in snapshot.access.reports(for: request, address: address) {
            note("access", "reported", "rule \(number) matches, and only reports")
        }
    }

    private mutating func noteEntry(_ entry: String, _ file: String) { note("access", "list", "\(entry) in \(file)") }
}
