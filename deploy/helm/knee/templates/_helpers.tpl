{{/* Labels of a part, by which policies and affinities select it. (list . "agent") */}}
{{- define "knee.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: knee
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "knee.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "knee.natsUrl" -}}
{{- if .Values.nats.enabled -}} nats://{{ .Release.Name }}-nats:4222 {{- else -}} {{ .Values.nats.url }} {{- end -}}
{{- end }}

{{- define "knee.logins" -}}
{{ .Values.logins.existingSecret | default (printf "%s-logins" .Release.Name) }}
{{- end }}

{{- define "knee.claim" -}}
{{ .Values.report.existingClaim | default (printf "%s-reports" .Release.Name) }}
{{- end }}

{{/* What every pod has: no root, no token of the cluster's API. */}}
{{- define "knee.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "knee.user" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
# Not each file of a large volume at each start.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "knee.container" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{/* Rather not on a node that makes load. */}}
{{- define "knee.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "knee.labels" (list . "agent") | nindent 12 }}
{{- end }}

{{/* The password of whoever conducts, as environment. */}}
{{- define "knee.coordinatorLogin" -}}
- name: NATS_USER
  value: coordinator
- name: NATS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "knee.logins" . }}
      key: KNEE_COORDINATOR_PASSWORD
{{- end }}

{{/* Names of the variables with passwords, one for each login. */}}
{{- define "knee.passwords" -}}
KNEE_COORDINATOR_PASSWORD
{{- if eq .Values.agents.kind "DaemonSet" }}
KNEE_AGENTS_PASSWORD
{{- else }}
{{- range $i := until (int .Values.agents.count) }}
KNEE_AGENT_{{ $i }}_PASSWORD
{{- end }}
{{- end }}
{{- end }}

{{/* Permissions of an agent, as in deploy/nats.conf: user, password and the agent's name in subjects. */}}
{{- define "knee.agentLogin" -}}
{
  user: {{ .user }}
  password: ${{ .password }}
  permissions {
    publish {
      allow: [
        "$KV.knee-agents.{{ .name }}"
        "knee.beat.*.{{ .name }}"
        "knee.live.*.{{ .name }}"
        "knee.result.*.*.{{ .name }}.*"
      ]
      {{- with .denyPublish }}
      deny: [{{ . | quote }}]
      {{- end }}
    }
    subscribe {
      allow: ["knee.agent.{{ .name }}.*", "knee.inbox.{{ .name }}.>"]
      {{- with .denySubscribe }}
      deny: [{{ . | quote }}]
      {{- end }}
    }
    allow_responses: true
  }
}
{{- end }}

{{- define "knee.natsConf" -}}
port: 4222
jetstream {
  max_file_store: {{ trimSuffix "Gi" .Values.nats.fileStore }}GB
}
accounts {
  KNEE {
    jetstream: enabled
    users: [
      # Whoever runs 'knee run --fleet' or 'knee fleet'. It reads all results.
      {
        user: coordinator
        password: $KNEE_COORDINATOR_PASSWORD
        permissions {
          publish {
            allow: [
              "knee.agent.*.*"
              "knee.result.*.*._spec.*"
              "$KV.knee-plans.*"
              "$KV.knee-coordinator.lease"
              "$JS.API.>", "$JS.ACK.>", "$JS.FC.>"
            ]
          }
          subscribe {
            allow: ["knee.beat.*.*", "knee.live.*.*", "knee.inbox._coordinator.>"]
          }
        }
      }
      {{- if eq .Values.agents.kind "DaemonSet" }}
      # All agents. The names of nodes are not known here, so that agents share a login, and each
      # can read the orders of the others.
      {{- include "knee.agentLogin" (dict "user" "agents" "password" "KNEE_AGENTS_PASSWORD" "name" "*" "denyPublish" "knee.result.*.*._spec.*" "denySubscribe" "knee.inbox._coordinator.>") | nindent 6 }}
      {{- else }}
      {{- range $i := until (int .Values.agents.count) }}
      {{- $name := printf "agent-%d" $i }}
      {{- include "knee.agentLogin" (dict "user" $name "password" (printf "KNEE_AGENT_%d_PASSWORD" $i) "name" $name) | nindent 6 }}
      {{- end }}
      {{- end }}
    ]
  }
}
{{- end }}
