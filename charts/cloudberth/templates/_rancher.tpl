{{- define "cloudberth.rancher.name" -}}
{{- .Values.rancherFip.name | default (printf "%s-rancher-fip" (include "cloudberth.fullname" . | trunc 51)) -}}
{{- end -}}

{{- define "cloudberth.rancher.selectorLabels" -}}
{{- if .Values.rancherFip.selectorLabels -}}
{{ toYaml .Values.rancherFip.selectorLabels }}
{{- else -}}
app.kubernetes.io/name: cloudberth-rancher-fip
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- end -}}

{{- define "cloudberth.rancher.labels" -}}
{{ include "cloudberth.rancher.selectorLabels" . }}
{{ include "cloudberth.commonLabels" . }}
{{- end -}}

{{- define "cloudberth.rancher.subjects" -}}
- kind: ServiceAccount
  name: {{ include "cloudberth.rancher.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
