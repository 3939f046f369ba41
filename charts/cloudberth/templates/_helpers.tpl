{{/* The name of everything that is made. */}}
{{- define "cloudberth.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Helm adds app.kubernetes.io/managed-by itself, so that plain manifests do not have it. */}}
{{- define "cloudberth.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: cloudberth
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "cloudberth.selectorLabels" -}}
{{- if .Values.selectorLabels -}}
{{ toYaml .Values.selectorLabels }}
{{- else -}}
app.kubernetes.io/name: cloudberth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- end -}}

{{- define "cloudberth.labels" -}}
{{ include "cloudberth.selectorLabels" . }}
{{ include "cloudberth.commonLabels" . }}
{{- end -}}

{{- define "cloudberth.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "cloudberth.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name: say which account to use, or set serviceAccount.create" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "cloudberth.roleName" -}}
{{- .Values.rbac.name | default (include "cloudberth.fullname" .) -}}
{{- end -}}

{{/* An image: a dict of the values and the tag to use where they have none. */}}
{{- define "cloudberth.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .tag) -}}
{{- end -}}
{{- end -}}

{{/* The names of the clouds that are enabled, in order, as a JSON list. */}}
{{- define "cloudberth.clouds" -}}
{{- $on := list -}}
{{- range $name, $cloud := .Values.clouds -}}
{{- if $cloud.enabled -}}{{- $on = append $on $name -}}{{- end -}}
{{- end -}}
{{- toJson $on -}}
{{- end -}}

{{/*
How each cloud is told where its API is and what to log in with: the variable of the URL, and for each key of its Secret
the variable that the program reads. The same name followed by _FILE names a file, which the program reads again when it changes.
*/}}
{{- define "cloudberth.variables" -}}
binarylane: {url: BINARYLANE_API_URL, files: {token: BINARYLANE_API_TOKEN}}
brightbox: {url: BRIGHTBOX_API_URL, files: {client: BRIGHTBOX_CLIENT, clientSecret: BRIGHTBOX_CLIENT_SECRET}}
cloudlycke: {url: CLOUDLYCKE_API_URL, files: {token: CLOUDLYCKE_TOKEN}}
cloudscale: {url: CLOUDSCALE_API_URL, files: {token: CLOUDSCALE_ACCESS_TOKEN}}
{{- end -}}

{{/* The same for every pod: no root, no way to become root, nothing that can be written to. */}}
{{- define "cloudberth.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "cloudberth.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
