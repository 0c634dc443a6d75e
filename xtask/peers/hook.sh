#!/usr/bin/env bash
# A hook as people write it: jq takes the payload apart, curl asks, jq takes the answer apart.
# hook.sh URL KEY
set -euo pipefail
input=$(cat)
tool=$(jq -r '.tool_name' <<<"$input")
command=$(jq -r '.tool_input.command // ""' <<<"$input")
session=$(jq -r '.session_id' <<<"$input")
request=$(jq -c --arg tool "$tool" --arg command "$command" --arg session "$session" \
    '.tool_name = $tool | .tool_input.command = $command | .session_id = $session' <<<"$input")
answer=$(curl -sS --max-time 30 -H "Authorization: Bearer $2" -H 'Content-Type: application/json' \
    --data-binary "$request" "$1")
decision=$(jq -r '.hookSpecificOutput.permissionDecision' <<<"$answer")
printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"%s"}}\n' "$decision"
